package keys

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/access"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/identity/apikey"
	"github.com/graphd-dev/graphd/internal/identity/file"
)

// CreateRequest says which key to make.
type CreateRequest struct {
	Name    string
	Roles   []string
	Groups  []string
	Tenants []string // the first is that of calls that name none
	Expires string   // "90d", "12h", a time of RFC 3339, or Never
}

// Never is the expiry of keys that do not expire.
const Never = "never"

// Created is a new key and its token, which is kept nowhere else.
type Created struct {
	Token string `json:"token"`
	Key   Entry  `json:"key"`
}

// CreateKey adds a key to a file, which it makes if there is none. The error is an
// *exit.UsageError for a wrong request or file, which then stays as it is.
func CreateKey(ctx context.Context, path string, r CreateRequest, now time.Time) (Created, error) {
	if err := checkPath(path); err != nil {
		return Created{}, err
	}
	for _, role := range r.Roles {
		if err := checkRole(role); err != nil {
			return Created{}, err
		}
	}
	end, err := parseExpiry(r.Expires, now)
	if err != nil {
		return Created{}, err
	}
	made, token, err := apikey.Create(ctx, path, apikey.Key{
		Name: r.Name, Roles: dropRepeated(r.Roles), Groups: dropRepeated(r.Groups), Tenants: dropRepeated(r.Tenants), Expires: file.NewTime(end),
	}, now)
	if err != nil {
		return Created{}, explainError(path, err)
	}
	return Created{Token: token, Key: newEntry(made, now)}, nil
}

// ListRoles returns the names of the roles that a key may have.
func ListRoles() []string {
	var all []string
	for _, row := range access.Roles() {
		all = append(all, string(row.Role))
	}
	return all
}

func checkRole(name string) error {
	known := ListRoles()
	if slices.Contains(known, name) {
		return nil
	}
	return exit.Usagef("--role %q is no role", name).WithHint("want %s", strings.Join(known, ", "))
}

// maxExpiryDays bounds durations, so that no time overflows.
const maxExpiryDays = 36_500

// parseExpiry returns when a key expires, the zero time for Never.
func parseExpiry(text string, now time.Time) (time.Time, error) {
	const want = "want a duration like 90d or 12h, a time like 2027-01-31T12:00:00Z, or " + Never
	if text == Never {
		return time.Time{}, nil
	}
	if end, err := time.Parse(time.RFC3339, text); err == nil {
		if !end.After(now) {
			return time.Time{}, exit.Usagef("--expires %s is in the past", text).WithHint(want)
		}
		return end, nil
	}
	var length time.Duration
	if digits, ok := strings.CutSuffix(text, "d"); ok && digits != "" && strings.Trim(digits, "0123456789") == "" {
		days, err := strconv.Atoi(digits)
		if err != nil || days > maxExpiryDays {
			return time.Time{}, exit.Usagef("--expires %s is too long", text).WithHint("want at most %dd, or %s", maxExpiryDays, Never)
		}
		length = time.Duration(days) * 24 * time.Hour
	} else if parsed, err := time.ParseDuration(text); err == nil {
		length = parsed
	} else {
		return time.Time{}, exit.Usagef("--expires %q is neither a duration nor a time", text).WithHint(want)
	}
	if length < time.Second {
		return time.Time{}, exit.Usagef("--expires %s is no time in the future", text).WithHint(want)
	}
	return now.Add(length), nil
}

// dropRepeated returns each name once.
func dropRepeated(names []string) []string {
	var all []string
	for _, name := range names {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

func checkPath(path string) error {
	if path == "" {
		return exit.Usagef("--file is missing").WithHint("name the file of the keys, or set GRAPHD_API_KEYS")
	}
	return nil
}

// explainError makes usage errors of those that a wrong command line or a wrong
// file causes.
func explainError(path string, err error) error {
	if wrong, ok := errors.AsType[*apikey.NewKeyError](err); ok {
		return exit.Usagef("--%s %s", flagOf(wrong.Field), wrong.Is).WithHint("want %s", wrong.Want)
	}
	if wrong, ok := errors.AsType[*apikey.UnknownKeyError](err); ok {
		return exit.Usagef("%v", wrong).WithHint("graphd keys list shows the keys")
	}
	if _, ok := errors.AsType[*file.Error](err); ok {
		return exit.Usagef("%v", err).WithHint("repair the file, or name another with --file; it stays as it is")
	}
	if folderIsMissing(path) {
		return exit.Usagef("--file %s: its folder does not exist", path).WithHint("make the folder, or name another file")
	}
	return err
}

// flagOf returns the flag that sets a field of a key.
func flagOf(field string) string {
	switch field {
	case "keys":
		return "file"
	case "groups", "roles", "tenants":
		return strings.TrimSuffix(field, "s")
	}
	return field
}
