"""What a rank timeline draws, made up: two ranks with two buckets, and one rank alone."""

from readtorch.csrc.distributed.timeline import Timeline


def collective(bucket, begin, moving, end, parameters):
    return {
        "lane": "communication",
        "name": f"bucket {bucket}",
        "bucket": bucket,
        "bytes": 2048,
        "parameters": parameters,
        "begin": begin,
        "moving": moving,
        "end": end,
    }


def exported(rank, late=0.0):
    """Ten milliseconds backward; half of bucket 1 moves while this rank can only wait."""
    timeline = Timeline(rank)
    timeline.add_span("compute", "forward", 5.0, 5.004)
    timeline.add_span("compute", "backward", 5.004 + late, 5.014)
    timeline.add_span("wait", "waits for the buckets", 5.014, 5.016)
    timeline.add_span("compute", "step", 5.016, 5.018)
    timeline.spans += [
        collective(0, 5.006 + late, 5.008, 5.012, ["1.bias", "1.weight"]),
        collective(1, 5.012, 5.012, 5.016, ["0.weight"]),
    ]
    timeline.instants += [
        {"name": "gradient", "parameter": "1.bias", "bucket": 0, "at": 5.005},
        {"name": "backward is over", "at": 5.014},
        {"name": "gradient", "parameter": "0.weight", "bucket": 1, "at": 5.012},
    ]
    return timeline.export()


def alone():
    timeline = Timeline(0)
    timeline.add_span("compute", "forward", 1.0, 1.001)
    timeline.add_span("compute", "loads data", 1.001, 1.002)
    return timeline.export()


def two_runs():
    return {"alone": [alone()], "two ranks": [exported(0), exported(1, late=0.002)]}
