"""How the data is read: options that every command on a data set has."""

from typing import Annotated, TypeAlias

import typer

Resize: TypeAlias = Annotated[int | None, typer.Option(help="Make all images square, of this side in pixels.")]
Label: TypeAlias = Annotated[str | None, typer.Option(help="Column with the labels.")]
Image: TypeAlias = Annotated[str | None, typer.Option(help="Column with the images.")]
TestFraction: TypeAlias = Annotated[
    float | None, typer.Option(help="Share of each class held out where there is no test part; 0.2 if not given.")
]
Flip: TypeAlias = Annotated[
    bool | None, typer.Option("--flip/--no-flip", help="Whether a mirrored image keeps its label; a guess if not.")
]
