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
	roleGround role = "ground" // behind all
	rolePanel  role = "panel"  // nodes
	roleStroke role = "stroke" // edges and borders
	roleName   role = "name"
	roleNote   role = "note"   // labels of edges, icons
	roleAccent role = "accent" // nodes that ask people
)

// colours are what a role has in a light and a dark drawing, each 0xrrggbb.
type colours struct{ light, dark uint32 }

// findColours returns the colours of a role.
func (r role) findColours() colours {
	switch r {
	case roleGround:
		return colours{0xf7f7f8, 0x0c0d10}
	case rolePanel:
		return colours{0xffffff, 0x16181d}
	case roleStroke:
		return colours{0xa3a7b4, 0x5a5f6d}
	case roleName:
		return colours{0x17181c, 0xeceef2}
	case roleNote:
		return colours{0x5d6270, 0x9aa0ad}
	case roleAccent:
		return colours{0x5b5bd6, 0x7d7dff}
	}
	return colours{}
}

// choose returns the colour in a drawing of a theme.
func (c colours) choose(t Theme) uint32 {
	if t == Dark {
		return c.dark
	}
	return c.light
}
