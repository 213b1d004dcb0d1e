package auditlog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/audit"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/visible"
)

// describeRecord returns a record on one line, for people.
func describeRecord(r *audit.Record) string {
	words := []string{r.Time.UTC().Format(time.RFC3339)}
	switch r.Kind {
	case audit.KindStart, audit.KindStop:
		words = append(words, string(r.Kind), r.Server)
	case audit.KindGap:
		words = append(words, "gap", fmt.Sprintf("%d records are lost", r.Lost))
		if r.LostSince != nil {
			words = append(words, "since "+r.LostSince.UTC().Format(time.RFC3339))
		}
		if r.Unauthenticated > 0 {
			words = append(words, fmt.Sprintf("%d of them of calls with wrong credentials", r.Unauthenticated))
		}
	case audit.KindCall:
		words = append(words, describeCall(r)...)
	default:
		words = append(words, string(r.Kind))
	}
	return visible.Line(strings.Join(words, "  "))
}

func describeCall(r *audit.Record) []string {
	outcome := string(r.Outcome)
	if r.Outcome != audit.OutcomeOK {
		outcome += " " + cmp.Or(r.Reason, r.Code)
	}
	words := []string{outcome, output.OrDash(r.Principal), r.ShortMethod()}
	for _, named := range []struct{ name, value string }{
		{"thread", r.Thread},
		{"run", r.Run},
		{"graph", r.Graph},
		{"version", r.Version},
		{"worker", r.Worker},
		{"rule", r.Rule},
		{"tenant", r.Tenant},
		{"from", r.Remote},
	} {
		if named.value != "" {
			words = append(words, named.name+" "+named.value)
		}
	}
	for _, q := range r.Questions {
		text := "question " + output.OrDash(q.ID)
		switch {
		case q.Dismissed:
			text += " dismissed"
		case q.Value != "":
			text += " " + q.Value
		}
		words = append(words, text)
	}
	for _, name := range slices.Sorted(maps.Keys(r.What)) {
		words = append(words, name+"="+strings.Join(r.What[name], ","))
	}
	return words
}
