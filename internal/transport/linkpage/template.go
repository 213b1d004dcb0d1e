package linkpage

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // of the template
	"encoding/base64"
	"html/template"
	"net/http"
	"strconv"
	"strings"
)

// style is the style sheet of a page.
type style = template.CSS

//go:embed page.html
var pageText string

//go:embed style.css
var styleText string

// pages renders pages.
type pages struct {
	template *template.Template
	style    style
	policy   string // Content-Security-Policy
}

func newPages() (*pages, error) {
	parsed, err := template.New("page").Parse(pageText)
	if err != nil {
		return nil, err
	}
	text := strings.TrimSpace(styleText)
	sum := sha256.Sum256([]byte(text))
	return &pages{
		template: parsed, style: style(text),
		policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	}, nil
}

// setHeaders keeps pages out of caches, frames and the logs of other sites.
func (p *pages) setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", p.policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Robots-Tag", "noindex, nofollow")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// renderPage writes a page, as a whole or not at all.
func (v *visit) renderPage(code int, p *page) {
	p.Style = v.pages.style
	var text bytes.Buffer
	if err := v.pages.template.Execute(&text, p); err != nil {
		http.Error(v.w, "the page can't be shown", http.StatusInternalServerError)
		return
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(text.Len()))
	v.leave() // clients may be slow
	v.w.WriteHeader(code)
	if v.r.Method != http.MethodHead {
		_, _ = v.w.Write(text.Bytes()) // the client may have left
	}
}
