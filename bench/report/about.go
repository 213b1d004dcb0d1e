package report

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// About says where a result comes from.
type About struct {
	Date     string            `json:"date"`
	Commit   string            `json:"commit"`
	Machine  string            `json:"machine"`
	Cores    int               `json:"cores"`
	Versions map[string]string `json:"versions"`
	Settings string            `json:"settings"`
}

// Here describes this machine and this checkout.
func Here(ctx context.Context, now time.Time, settings string) About {
	a := About{
		Date: now.UTC().Format(time.DateOnly), Cores: runtime.NumCPU(), Machine: processor(), Settings: settings,
		Commit: output(ctx, "git", "describe", "--tags", "--always", "--dirty"), Versions: map[string]string{},
	}
	a.Versions["go"] = strings.TrimPrefix(runtime.Version(), "go")
	if v := output(ctx, "redis-server", "--version"); v != "" {
		for word := range strings.FieldsSeq(v) {
			if version, ok := strings.CutPrefix(word, "v="); ok {
				a.Versions["redis"] = version
			}
		}
	}
	return a
}

// String is one paragraph.
func (a About) String() string {
	versions := make([]string, 0, len(a.Versions))
	for _, name := range slices.Sorted(maps.Keys(a.Versions)) {
		versions = append(versions, name+" "+a.Versions[name])
	}
	return fmt.Sprintf("%s, %d × %s, everything on this one machine. %s.\n%s", a.Date, a.Cores, a.Machine,
		strings.Join(versions, ", "), a.Settings)
}

// Line is one line, for a page.
func (a About) Line() string {
	return fmt.Sprintf("%s, %d × %s, graphd %s, redis %s; %s", a.Date, a.Cores, a.Machine, a.Commit, a.Versions["redis"], a.Settings)
}

func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	}
	return runtime.GOOS + "/" + runtime.GOARCH
}

func output(ctx context.Context, name string, arguments ...string) string {
	text, err := exec.CommandContext(ctx, name, arguments...).Output() //nolint:gosec // constants
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// Name is short and suits a file.
func (a About) Name() string {
	words := strings.FieldsFunc(strings.ToLower(a.Machine), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	words = slices.DeleteFunc(words, func(w string) bool { return w == "r" || w == "tm" || w == "cpu" || w == "processor" })
	return fmt.Sprintf("%s-%dx-%s", a.Date, a.Cores, strings.Join(words, "-"))
}
