package drawing

// Theme chooses the colours of a drawing.
type Theme string

// Themes.
const (
	Auto  Theme = "auto" // an SVG has those of its reader, a PNG is light
	Light Theme = "light"
	Dark  Theme = "dark"
)

// Themes returns all themes.
func Themes() []Theme { return []Theme{Auto, Light, Dark} }

// role is what something is coloured for.
type role string

// Roles.
const (
	ground role = "ground" // behind all
	panel  role = "panel"  // nodes
	stroke role = "stroke" // edges and borders
	name   role = "name"
	note   role = "note"   // labels of edges, icons
	accent role = "accent" // nodes that ask people
)

// findColour is a colour in a light and a dark drawing, each 0xrrggbb.
type colour struct{ light, dark uint32 }

func (r role) findColour() colour {
	switch r {
	case ground:
		return colour{0xf7f7f8, 0x0c0d10}
	case panel:
		return colour{0xffffff, 0x16181d}
	case stroke:
		return colour{0xa3a7b4, 0x5a5f6d}
	case name:
		return colour{0x17181c, 0xeceef2}
	case note:
		return colour{0x5d6270, 0x9aa0ad}
	case accent:
		return colour{0x5b5bd6, 0x7d7dff}
	}
	return colour{}
}

// in returns the colour in a drawing of the theme.
func (c colour) in(t Theme) uint32 {
	if t == Dark {
		return c.dark
	}
	return c.light
}
