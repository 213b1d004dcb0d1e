package auditlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/audit"
	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/visible"
)

// Request says what is shown.
type Request struct {
	Files     []string // in the order of their lines; "-" is standard input
	Selection Selection
	CheckOnly bool // show no records, but the end of the chain
	Follow    bool // wait for further lines of the last file
}

// followInterval is how often a file is looked at for further lines.
const followInterval = 250 * time.Millisecond

// viewer shows the entries of files.
type viewer struct {
	request Request
	to      output.Output
	lines   *audit.Reader
	name    string // of the current file
	defects int
}

// ShowRecords shows the records that a request selects, and the defects of all lines on
// the error stream. It returns an *exit.HintError when lines have defects, and the
// errors of files and of the output.
func ShowRecords(ctx context.Context, r Request, to output.Output) error {
	v := &viewer{request: r, to: to, lines: audit.NewReader(nil)}
	for i, name := range r.Files {
		v.name = name
		if err := v.showFile(ctx, r.Follow && i == len(r.Files)-1); err != nil {
			return err
		}
	}
	return v.showChainEnd()
}

// showFile shows one file to its end, or until ctx ends.
func (v *viewer) showFile(ctx context.Context, follow bool) (err error) {
	if v.name == "-" {
		v.lines.Next(v.to.In)
		return v.showRest()
	}
	f, err := openFile(v.name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	v.lines.Next(f)
	for {
		if err := v.showLines(); err != nil {
			return err
		}
		if !follow {
			return v.showLastLine()
		}
		next, err := findNextFile(v.name, f)
		if err != nil {
			return err
		}
		if next == nil {
			if backoff.Sleep(ctx, followInterval) != nil {
				return nil // the caller has ended it
			}
			continue
		}
		if err := errors.Join(v.showRest(), f.Close()); err != nil { // what was written before the file was moved
			return errors.Join(err, next.Close())
		}
		f = next
		v.lines.Next(f)
	}
}

func openFile(name string) (*os.File, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, exit.Usagef("%s is no regular file", name).WithHint("want a file that graphd serve --audit file:PATH wrote, or - for standard input")
	}
	f, err := os.Open(name) //nolint:gosec // the caller names the file
	if err != nil {
		if strings.Contains(name, "*") {
			return nil, &exit.HintError{Err: err, Hint: "no file matches the pattern: leave it out while no file was renamed"}
		}
		return nil, &exit.HintError{Err: err, Hint: "name a file that graphd serve --audit file:PATH wrote, or - for standard input"}
	}
	return f, nil
}

// findNextFile opens the file at a path when it is another one than the file that was
// opened there; nil = it is the same, or there is none yet.
func findNextFile(name string, current *os.File) (*os.File, error) {
	there, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	own, statError := current.Stat()
	if err := errors.Join(err, statError); err != nil || os.SameFile(there, own) {
		return nil, err
	}
	return openFile(name)
}

// showRest shows all lines, also one without an end.
func (v *viewer) showRest() error {
	if err := v.showLines(); err != nil {
		return err
	}
	return v.showLastLine()
}

func (v *viewer) showLastLine() error {
	if e, ok := v.lines.Flush(); ok {
		return v.showEntry(&e)
	}
	return nil
}

// showLines shows all lines that have an end.
func (v *viewer) showLines() error {
	for {
		e, err := v.lines.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		if err := v.showEntry(&e); err != nil {
			return err
		}
	}
}

// shownEntry is an entry for programs.
type shownEntry struct {
	audit.Line

	Defects []string `json:"defects,omitempty"`
}

func (v *viewer) showEntry(e *audit.Entry) error {
	for _, defect := range e.Defects {
		v.defects++
		if err := output.WriteLine(v.to.Err, "%s line %d: %s", visible.Line(v.name), e.Number, visible.Line(defect)); err != nil {
			return err
		}
	}
	if !e.IsValid || v.request.CheckOnly || !v.request.Selection.selectsRecord(&e.Record) {
		return nil
	}
	if v.to.Format != output.Text {
		return output.WriteValue(v.to.Out, v.to.Format, shownEntry{e.Line, e.Defects})
	}
	return output.WriteLine(v.to.Out, "%s", describeRecord(&e.Record))
}

// chainEnd is the end of the chain for programs.
type chainEnd struct {
	Last    uint64 `json:"last"`
	Digest  string `json:"digest"`
	Defects int    `json:"defects"`
}

// showChainEnd shows the end of the chain, and returns an error if there are defects.
func (v *viewer) showChainEnd() error {
	if v.request.CheckOnly {
		last, digest := v.lines.Last()
		var err error
		if v.to.Format != output.Text {
			err = output.WriteValue(v.to.Out, v.to.Format, chainEnd{last, digest, v.defects})
		} else {
			err = output.WriteLine(v.to.Out, "the last line is number %d with the digest %s", last, digest)
		}
		if err != nil {
			return err
		}
	}
	if v.defects > 0 {
		return &exit.HintError{
			Err:  fmt.Errorf("the lines are no chain: %d defects", v.defects),
			Hint: "compare with a copy of the records; a defect at the start of a server may be a line that a killed server has left",
		}
	}
	return nil
}
