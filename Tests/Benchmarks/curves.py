"""Draws curves of cost against size as an SVG, without further packages."""
import math

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 300, 220, 52, 34, 40
COLORS = {"waybill": "#0b62c4", "libmosquitto": "#c2410c", "raw": "#6b7280"}


def label(value):
    for limit, unit in [(1 << 20, "Mi"), (1 << 10, "Ki")]:
        if value >= limit and value % limit == 0:
            return f"{value // limit}{unit}"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def panel(x, title, unit, below, series):
    """One diagram, both axes logarithmic. series: name to a list of (size, cost)."""
    sizes = sorted({size for points in series.values() for size, _ in points})
    costs = [cost for points in series.values() for _, cost in points]
    low, high = 10 ** math.floor(math.log10(min(costs))), 10 ** math.ceil(math.log10(max(costs)))
    low = high / 10 if high <= low else low
    across, down = WIDTH - LEFT - 12, HEIGHT - TOP - BOTTOM

    def place(size, cost):
        return (x + LEFT + across * (math.log(size) - math.log(sizes[0])) / (math.log(sizes[-1]) - math.log(sizes[0])),
                TOP + down * (math.log(high) - math.log(cost)) / (math.log(high) - math.log(low)))

    parts = [f'<text x="{x + LEFT}" y="16" class="title">{title}</text>']
    power = low
    while power <= high * 1.001:
        y = place(sizes[0], power)[1]
        parts.append(f'<line x1="{x + LEFT}" x2="{x + LEFT + across}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        parts.append(f'<text x="{x + LEFT - 5}" y="{y + 3:.1f}" text-anchor="end">{power:g}</text>')
        power *= 10
    parts.append(f'<text x="{x + LEFT - 5}" y="{TOP - 8}" text-anchor="end">{unit}</text>')
    for size in sizes if len(sizes) < 6 else sizes[::2]:
        at = place(size, low)[0]
        parts.append(f'<text x="{at:.1f}" y="{TOP + down + 14}" text-anchor="middle">{label(size)}</text>')
    parts.append(f'<text x="{x + LEFT + across / 2}" y="{TOP + down + 30}" text-anchor="middle">{below}</text>')
    for number, (name, points) in enumerate(series.items()):
        color = COLORS.get(name.split(",")[0], "#15803d")
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in (place(*point) for point in points))
        dash = ' stroke-dasharray="4 3"' if "," in name else ""
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.8"{dash}/>')
        for point in points:
            px, py = place(*point)
            parts.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="2.2" fill="{color}"/>')
        parts.append(f'<text x="{x + LEFT + 6}" y="{TOP + 10 + 12 * number}" fill="{color}">{name}</text>')
    return parts


def draw(path, panels):
    """panels: a list of (title, unit, text below the axis, series)."""
    width = WIDTH * len(panels)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEIGHT}" viewBox="0 0 {width} {HEIGHT}">',
             "<style>text { font: 10px sans-serif; fill: #374151 } .title { font-weight: bold; font-size: 11px }",
             ".grid { stroke: #e5e7eb }</style>",
             f'<rect width="{width}" height="{HEIGHT}" fill="white"/>']
    for number, one in enumerate(panels):
        parts += panel(number * WIDTH, *one)
    # A name has the colour of its curve.
    text = "\n".join(parts).replace('" fill="#', '" style="fill:#').replace("</svg>", "")
    with open(path, "w") as file:
        file.write(text + "\n</svg>\n")
