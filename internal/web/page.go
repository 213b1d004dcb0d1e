package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

// Page serves the files of a page whose scripts show what an address names.
type Page struct {
	files map[string]*pageFile // by path; "" is index.html
}

// pageFile is a file as it is sent.
type pageFile struct {
	contentType string
	etag        string
	plain, gzip []byte
}

const (
	indexFile    = "index.html"
	assetsFolder = "assets/"
)

// NewPage reads the files of a page: index.html, and what it loads under assets/.
func NewPage(files fs.FS) (*Page, error) {
	p := &Page{files: map[string]*pageFile{}}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		p.files[name], err = newPageFile(name, content)
		return err
	})
	if err == nil && p.files[indexFile] == nil {
		err = fmt.Errorf("web: the page has no %s", indexFile)
	}
	return p, err
}

func newPageFile(name string, content []byte) (*pageFile, error) {
	sum := sha256.Sum256(content)
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return &pageFile{
		contentType: mime.TypeByExtension(path.Ext(name)), etag: `"` + hex.EncodeToString(sum[:16]) + `"`,
		plain: content, gzip: packed.Bytes(),
	}, nil
}

// pagePolicy lets the page load its own files and call its own server, and nothing else.
const pagePolicy = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

// ServeHTTP serves a file. Every address that is none is one that the page shows.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", pagePolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	file := p.files[name]
	switch {
	case file == nil && (strings.HasPrefix(name, assetsFolder) || strings.HasPrefix(name, "/")): // the path //HOST is that of another site in a link
		http.NotFound(w, r)
		return
	case file == nil:
		file = p.files[indexFile]
	}
	header.Set("Cache-Control", "no-cache") // the browser asks whether it has changed
	header.Set("ETag", file.etag)
	header.Add("Vary", "Accept-Encoding") // besides what the guard has said
	if r.Header.Get("If-None-Match") == file.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", file.contentType)
	content := file.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
		content = file.gzip
	}
	header.Set("Content-Length", fmt.Sprint(len(content)))
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(content) // the browser has left
}

// Part serves some of the paths of a server.
type Part interface {
	http.Handler

	// Serves reports whether a path is one of this part.
	Serves(name string) bool
}

// Handler serves each path by the first of these parts that has it, and all others as a page.
func Handler(page *Page, parts ...Part) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, part := range parts {
			if part.Serves(r.URL.Path) {
				part.ServeHTTP(w, r)
				return
			}
		}
		page.ServeHTTP(w, r)
	})
}
