"""The colours of a page's weights: 256 levels on white and on dark, and one for what is not a number.

Straight lines through OKLCh, the numbers of src/draw/color_scale.c, so that pages and pictures look alike.
"""
import functools
import math

__all__ = ["dark_colors", "light_colors"]

_LEVELS = 256
_NOT_A_NUMBER = (0.70, 0.19, 45.0)

Color = tuple[float, float, float]  # of OKLCh: lightness 0..1, chroma, hue in degrees


def _linear_rgb(lightness: float, chroma: float, hue: float) -> Color:
    """OKLab to linear sRGB, by the matrices that the space's description gives."""
    a = chroma * math.cos(hue * math.pi / 180)
    b = chroma * math.sin(hue * math.pi / 180)
    l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    s = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
        -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
        -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s,
    )


def _encode(linear: float) -> int:
    clipped = min(max(linear, 0.0), 1.0)
    value = 12.92 * clipped if clipped <= 0.0031308 else 1.055 * clipped ** (1 / 2.4) - 0.055
    return math.floor(255 * value + 0.5)


def _hexadecimal(color: Color) -> str:
    """The nearest colour that a display has: lightness and hue are kept, chroma gives way."""
    lightness, chroma, hue = color
    rgb = _linear_rgb(lightness, chroma, hue)
    while not all(0 <= part <= 1 for part in rgb) and chroma > 0:
        chroma = max(0.0, chroma - 0.002)
        rgb = _linear_rgb(lightness, chroma, hue)
    return "".join(f"{_encode(part):02x}" for part in rgb)


def _scale(begin: Color, end: Color, swell: float) -> str:
    """From one colour to another; chroma swells by `swell` in the middle."""
    colors = []
    for level in range(_LEVELS):
        part = level / (_LEVELS - 1)
        lightness, chroma, hue = (a + (b - a) * part for a, b in zip(begin, end))
        colors.append(_hexadecimal((lightness, chroma + 4 * swell * part * (1 - part), hue)))
    return "".join(colors) + _hexadecimal(_NOT_A_NUMBER)


@functools.cache
def light_colors() -> str:
    """Six hexadecimal digits a colour."""
    return _scale((0.968, 0.006, 235), (0.27, 0.10, 280), 0.12)


@functools.cache
def dark_colors() -> str:
    return _scale((0.255, 0.014, 270), (0.95, 0.05, 195), 0.11)
