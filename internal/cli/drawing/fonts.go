package drawing

import (
	"errors"
	"image"
	"slices"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/gomedium"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// fonts are those of the Go project.
type fonts struct {
	bold, medium *sfnt.Font
	faces        map[faceKey]font.Face
	lacking      []rune // what was painted and they have not
}

// faceKey is a font in one size, which is that of CSS.
type faceKey struct {
	letters *sfnt.Font
	size    float64
}

func openFonts() (*fonts, error) {
	bold, errBold := opentype.Parse(gobold.TTF)
	medium, errMedium := opentype.Parse(gomedium.TTF)
	return &fonts{bold: bold, medium: medium, faces: map[faceKey]font.Face{}}, errors.Join(errBold, errMedium)
}

// openFace returns the font of a text. Errors are defects: the size is one of a few constants.
func (f *fonts) openFace(t text) (font.Face, *sfnt.Font, error) {
	key := faceKey{f.medium, t.size}
	if t.bold {
		key.letters = f.bold
	}
	if face, ok := f.faces[key]; ok {
		return face, key.letters, nil
	}
	const pointsPerInch = 72
	face, err := opentype.NewFace(key.letters, &opentype.FaceOptions{Size: t.size * pngScale, DPI: pointsPerInch, Hinting: font.HintingNone})
	f.faces[key] = face
	return face, key.letters, err
}

// paintText paints a text.
func (r *raster) paintText(t text) {
	face, letters, err := r.fonts.openFace(t)
	if err != nil || r.ctx.Err() != nil {
		r.err = errors.Join(r.err, err)
		return
	}
	r.fonts.noteLacking(letters, t.content)
	d := font.Drawer{Dst: r.image, Src: image.NewUniform(r.findColour(t.fill)), Face: face}
	x := fixed.Int26_6(t.x * pngScale * 64)
	if t.centered {
		x -= d.MeasureString(t.content) / 2
	}
	d.Dot = fixed.Point26_6{X: x, Y: fixed.Int26_6(t.y * pngScale * 64)}
	d.DrawString(t.content)
}

// noteLacking notes the characters of a text that a font lacks.
func (f *fonts) noteLacking(letters *sfnt.Font, text string) {
	var buffer sfnt.Buffer
	for _, c := range text {
		if glyph, err := letters.GlyphIndex(&buffer, c); (err != nil || glyph == 0) && !slices.Contains(f.lacking, c) {
			f.lacking = append(f.lacking, c)
		}
	}
}
