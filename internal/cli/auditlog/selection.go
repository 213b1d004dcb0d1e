package auditlog

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/access"
	"github.com/graphd-dev/graphd/internal/audit"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/graph"
)

// Selection selects records; a zero field selects all.
type Selection struct {
	Since     time.Time
	Principal string
	Tenant    string
	Method    string // like Resume, GraphService/Resume or graphd.v1.GraphService/Resume
	Thread    string
	Question  string
	Refused   bool // calls that were refused only
}

// ParseSince reads a time, or a duration before now. The error is an *exit.UsageError.
func ParseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	if digits, ok := strings.CutSuffix(text, "d"); ok {
		if days, err := strconv.ParseUint(digits, 10, 16); err == nil {
			return now.AddDate(0, 0, -int(days)), nil
		}
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, exit.Usagef("--since %q is no time", text).WithHint("want a duration like 24h or 7d, or a time like 2026-11-23T09:00:00Z")
	}
	return at, nil
}

// CheckMethod checks that a method is none, or one that graphd serves. The error is an
// *exit.UsageError with the nearest name.
func CheckMethod(name string) error {
	if name == "" {
		return nil
	}
	var known []string
	for _, row := range access.Methods() {
		if row.Scope == access.ScopeEndpoint { // graphd calls these methods and does not serve them
			continue
		}
		full := strings.TrimPrefix(row.Method, "/")
		if isMethod(full, name) {
			return nil
		}
		known = append(known, shortenMethod(full, strings.Contains(name, "/")))
	}
	known = slices.Compact(slices.Sorted(slices.Values(known))) // services share some names
	return exit.Usagef("--method %q is no method of graphd%s", name, graph.Suggest(name, known)).
		WithHint("want a name like Resume, GraphService/Resume or graphd.v1.GraphService/Resume")
}

// shortenMethod returns a method without its package, and without its service unless it is
// to stay.
func shortenMethod(full string, withService bool) string {
	service, method, _ := strings.Cut(full, "/")
	if !withService {
		return method
	}
	return service[strings.LastIndexByte(service, '.')+1:] + "/" + method
}

// selectsRecord reports whether a record is shown.
func (s *Selection) selectsRecord(r *audit.Record) bool {
	switch {
	case r.Time.Before(s.Since),
		s.Principal != "" && r.Principal != s.Principal,
		s.Tenant != "" && r.Tenant != s.Tenant,
		s.Thread != "" && r.Thread != s.Thread,
		s.Refused && r.Outcome != audit.OutcomeRefused,
		s.Method != "" && !isMethod(r.Method, s.Method):
		return false
	case s.Question == "":
		return true
	}
	for i := range r.Questions {
		if r.Questions[i].ID == s.Question {
			return true
		}
	}
	return false
}

// isMethod reports whether a full name ends with a name, at its beginning or behind a
// dot or a slash.
func isMethod(full, name string) bool {
	name = strings.TrimPrefix(name, "/")
	rest, ok := strings.CutSuffix(full, name)
	return ok && (rest == "" || strings.HasSuffix(rest, ".") || strings.HasSuffix(rest, "/"))
}
