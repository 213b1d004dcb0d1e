// Package page has the files of the page for browsers, as `make page` builds them from src/.
package page

import (
	"embed"
	"io/fs"
)

//go:embed dist/index.html all:dist/assets
var files embed.FS

// DrawingScript is JavaScript that sets a variable drawing. Its function draw takes the JSON of a
// GraphSpec and a function that makes text visible, and returns where nodes and edges are drawn, as
// JSON.
//
//go:embed dist/drawing.js
var DrawingScript string

// Files returns the files: index.html, and what it loads under assets/.
func Files() (fs.FS, error) { return fs.Sub(files, "dist") }
