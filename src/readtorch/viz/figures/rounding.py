"""How many bytes the caching allocator sets aside for a request (the chapter "The caching allocator")."""

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Integer
from readtorch.viz.picture import box, drawing


def model(inputs):
    size = inputs["size"]
    block = max(512, (size + 511) // 512 * 512)
    say = f"A request for {size:,} bytes gets a block of {block:,} bytes; {block - size:,} of them stay unused."
    return {"block": block, "used": size / block, "say": say}


def picture(result, step):
    used = 400 * result["used"]
    return drawing(420, 40, box(10, 5, 400, 30, "free"), box(10, 5, used, 30, "pale"))


FIGURE = Figure(
    name="rounding",
    title="Rounding a request",
    inputs=(Integer("size", "bytes asked for", 1000, low=1, high=1_048_576, step=100, slider=True),),
    model=model,
    picture=picture,
)
