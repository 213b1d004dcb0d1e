// Package page has the files of the page for browsers, as `make page` builds them from src/.
package page

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var files embed.FS

// Files returns the files: index.html, and what it loads under assets/.
func Files() (fs.FS, error) { return fs.Sub(files, "dist") }
