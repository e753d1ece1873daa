"""`lcmat list`: the names that the other commands take."""

import typer


def list_names() -> None:
    """List methods, networks and kinds of data, each with its options and their defaults."""
    import lcmat

    for title, entries in (
        ("Methods (--method, options with --set)", lcmat.selectors()),
        ("Condensers (of `lcmat condense`, options with --set)", lcmat.condensers()),
        ("While training (of `lcmat dynamic`, beside all methods)", lcmat.dynamic.BASELINES.describe()),
        ("Networks (--net, options as in convnet:width=32)", lcmat.nets()),
        ("Data (DATA)", lcmat.sources()),
    ):
        typer.echo(f"{title}:")
        width = max(map(len, entries))
        for name, description in entries.items():
            typer.echo(f"  {name:<{width}}  {description}")
        typer.echo()
