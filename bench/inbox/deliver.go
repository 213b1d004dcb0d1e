package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/graphd-dev/graphd/bench/report"
)

// Names of the marks between which a document has the tables.
const (
	mark       = "bench-inbox"
	markOfPage = "bench-inbox-page"
)

// deliver shows the tables and writes the files.
func (o *options) deliver(r Result, w io.Writer) error {
	if _, err := io.WriteString(w, r.Text()); err != nil {
		return err
	}
	if o.docs != "" {
		if err := document(o.docs, r); err != nil {
			return err
		}
	}
	if o.out == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil { //nolint:gosec // everybody may read it
		return err
	}
	name := filepath.Join(o.out, r.About.Name()+"-inbox")
	if !r.isOfStores() {
		name += "-page"
	}
	return errors.Join(write(name+".json", append(text, '\n')), write(name+".md", []byte(r.Text())))
}

func write(file string, text []byte) error {
	return os.WriteFile(file, text, 0o644) //nolint:gosec // who runs the benchmark names it, and everybody may read it
}

// isOfStores reports whether more than the page was measured.
func (r *Result) isOfStores() bool { return len(r.Operations)+len(r.Beside)+len(r.Sent) > 0 }

// document puts the tables of what was measured into a document.
func document(file string, r Result) error {
	content, err := os.ReadFile(file) //nolint:gosec // who runs the benchmark names it
	if err != nil {
		return err
	}
	text, line := string(content), r.About.Line()+"\n\n"
	if r.isOfStores() {
		text, err = report.Between(text, mark, line+strings.Join(r.storeTables(), "\n"))
	}
	if err == nil && len(r.InPage) > 0 {
		text, err = report.Between(text, markOfPage, line+r.inPageTable())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return write(file, []byte(text))
}

// load reads a result that was measured before.
func load(file string) (Result, error) {
	var r Result
	text, err := os.ReadFile(file) //nolint:gosec // who runs the benchmark names it
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}
