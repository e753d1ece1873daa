"""`lcmat list`: the names that the other commands take."""

import typer


def list_names() -> None:
    """List methods, networks and kinds of data, each with its options and their defaults.

    Below each selection method stand what it needs, whether it gives weights and whether it draws; its cost for k picks
    from a group of n samples with d features and C classes; and where it is defined.
    """
    import lcmat
    from lcmat.selection import SELECTORS

    below = {entry.name: entry.facts.describe() for entry in SELECTORS}
    for title, entries, details in (
        ("Methods (--method, options with --set)", lcmat.selectors(), below),
        ("Condensers (of `lcmat condense`, options with --set)", lcmat.condensers(), {}),
        ("While training (of `lcmat dynamic`, beside all methods)", lcmat.dynamic.BASELINES.describe(), {}),
        ("Networks (--net, options as in convnet:width=32)", lcmat.nets(), {}),
        ("Data (DATA)", lcmat.sources(), {}),
    ):
        typer.echo(f"{title}:")
        width = max(map(len, entries))
        for name, description in entries.items():
            typer.echo(f"  {name:<{width}}  {description}")
            for detail in details.get(name, ()):
                typer.echo(f"  {'':<{width}}    {detail}")
        typer.echo()
