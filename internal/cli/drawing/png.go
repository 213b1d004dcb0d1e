package drawing

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"

	"golang.org/x/image/vector"
)

// pngScale is how many pixels of a PNG a pixel of CSS has.
const pngScale = 2

// mostPixels bounds a PNG: it takes 4 bytes a pixel while it is made.
const mostPixels = 64 << 20

// SizeError says that a drawing would be too large a PNG.
type SizeError struct{ Width, Height int }

// Error names the size.
func (e *SizeError) Error() string {
	return fmt.Sprintf("the graph is too large for a PNG: it would have %d × %d pixels, and may have %d million", e.Width, e.Height, mostPixels>>20)
}

// EncodePNG returns the drawing as PNG of two pixels for each pixel of CSS, and the characters that
// its font lacks: it has the letters of Latin, Greek and Cyrillic. Errors: *SizeError; that of the
// context; others are defects.
func (d *Drawing) EncodePNG(ctx context.Context, theme Theme) (encoded []byte, lacking string, err error) {
	width, height := int(math.Ceil(d.Width*pngScale)), int(math.Ceil(d.Height*pngScale))
	if width*height > mostPixels {
		return nil, "", &SizeError{Width: width, Height: height}
	}
	fonts, err := openFonts()
	if err != nil {
		return nil, "", err
	}
	r := &raster{ctx: ctx, theme: theme, image: image.NewRGBA(image.Rect(0, 0, width, height)), fonts: fonts}
	r.paintBox(box{Place: Place{d.Width / 2, d.Height / 2, d.Width, d.Height}, radius: nodeRadius, fill: roleGround})
	d.paintAll(r)
	if err := cmp.Or(ctx.Err(), r.err); err != nil {
		return nil, "", err
	}
	var b bytes.Buffer
	if err := png.Encode(&b, r.image); err != nil {
		return nil, "", err
	}
	return b.Bytes(), string(fonts.lacking), nil
}

// raster is a canvas of pixels. It paints nothing more when its context has ended.
type raster struct {
	ctx   context.Context
	theme Theme
	image *image.RGBA
	fonts *fonts
	err   error
}

// paintBox paints a rectangle, its border half inside and half outside.
func (r *raster) paintBox(b box) {
	if b.border != "" {
		r.fillPolygons([][]point{makeRoundRectangle(b.Place, b.radius, b.width/2)}, b.border)
	}
	inset := 0.0
	if b.border != "" {
		inset = -b.width / 2
	}
	r.fillPolygons([][]point{makeRoundRectangle(b.Place, b.radius, inset)}, b.fill)
}

// paintShape paints a path.
func (r *raster) paintShape(s shape) {
	lines := flattenPath(parsePath(s.path), point{s.dx, s.dy})
	if s.fill != "" {
		r.fillPolygons(lines, s.fill)
	}
	if s.line == "" {
		return
	}
	if s.dashed {
		lines = dashLines(lines)
	}
	for _, line := range lines {
		r.fillPolygons(outlineLine(line, s.width), s.line)
	}
}

// fillPolygons fills polygons, which go round in the same direction where they overlap.
func (r *raster) fillPolygons(polygons [][]point, with role) {
	if r.ctx.Err() != nil {
		return
	}
	bounds := findBounds(polygons).Intersect(r.image.Bounds())
	if bounds.Empty() {
		return
	}
	rasterizer := vector.NewRasterizer(bounds.Dx(), bounds.Dy())
	at := func(p point) (x, y float32) {
		return float32(p.x*pngScale - float64(bounds.Min.X)), float32(p.y*pngScale - float64(bounds.Min.Y))
	}
	for _, polygon := range polygons {
		for i, p := range polygon {
			x, y := at(p)
			if i == 0 {
				rasterizer.MoveTo(x, y)
			} else {
				rasterizer.LineTo(x, y)
			}
		}
		rasterizer.ClosePath()
	}
	rasterizer.DrawOp = draw.Over
	rasterizer.Draw(r.image, bounds, image.NewUniform(r.findColour(with)), image.Point{})
}

func (r *raster) findColour(with role) color.RGBA {
	c := with.findColours().choose(r.theme)
	return color.RGBA{R: uint8(c >> 16), G: uint8(c >> 8), B: uint8(c), A: 0xff}
}

// findBounds returns the pixels that polygons touch.
func findBounds(polygons [][]point) image.Rectangle {
	var bounds image.Rectangle
	for _, polygon := range polygons {
		for _, p := range polygon {
			x, y := int(math.Floor(p.x*pngScale)), int(math.Floor(p.y*pngScale))
			bounds = bounds.Union(image.Rect(x, y, x+2, y+2))
		}
	}
	return bounds
}
