package tenant_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/tenant"
)

func TestQualify(t *testing.T) {
	for _, c := range []struct{ name, id, want string }{
		{"default", "t-1", "t-1"},
		{"default", "default", "default"},
		{"acme", "t-1", "acme@t-1"},
		{"acme", "default", "acme@default"},
		{"a.b:c_d-e", "x.y:z", "a.b:c_d-e@x.y:z"},
		{"Default", "t", "Default@t"},
		{"acme", "Prüfung 2", "acme@Prüfung 2"}, // the name of a graph
		{strings.Repeat("n", tenant.MaxNameLength), "t", strings.Repeat("n", tenant.MaxNameLength) + "@t"},
	} {
		got, err := tenant.Qualify(c.name, c.id)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
		name, id := tenant.Split(got)
		require.Equal(t, [2]string{c.name, c.id}, [2]string{name, id})
	}
}

func TestQualifyRefuses(t *testing.T) {
	for _, c := range []struct{ name, id, want string }{
		{"", "t", "tenant is empty: want 1 to 64 of A-Z a-z 0-9 _ . : -"},
		{strings.Repeat("n", 65), "t", "tenant has 65 bytes: want 1 to 64 of A-Z a-z 0-9 _ . : -"},
		{"a@b", "t", `tenant "a@b" has '@' at byte 1: want 1 to 64 of A-Z a-z 0-9 _ . : -`},
		{"a b", "t", `tenant "a b" has ' ' at byte 1: want 1 to 64 of A-Z a-z 0-9 _ . : -`},
		{"{a}", "t", `tenant "{a}" has '{' at byte 0: want 1 to 64 of A-Z a-z 0-9 _ . : -`},
		{"a\n", "t", `tenant "a\n" has '\n' at byte 1: want 1 to 64 of A-Z a-z 0-9 _ . : -`},
		{"ä", "t", `tenant "ä" has 'Ã' at byte 0: want 1 to 64 of A-Z a-z 0-9 _ . : -`},
		{"acme", "", "id is empty: want an id of the tenant"},
		{"default", "acme@t", "id has '@': want an id without it, which belongs to the caller's tenant"},
		{"acme", "acme@t", "id has '@': want an id without it, which belongs to the caller's tenant"},
		{"acme", "@", "id has '@': want an id without it, which belongs to the caller's tenant"},
	} {
		got, err := tenant.Qualify(c.name, c.id)
		require.Empty(t, got)
		var refused *tenant.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, c.want, err.Error())
	}
}

func TestContains(t *testing.T) {
	for _, c := range []struct {
		name, qualified string
		want            bool
	}{
		{"", "t", true},
		{"", "acme@t", true},
		{"default", "t", true},
		{"default", "acme@t", false},
		{"acme", "acme@t", true},
		{"acme", "acme2@t", false},
		{"acme", "acme", false},
		{"acm", "acme@t", false},
	} {
		require.Equal(t, c.want, tenant.Contains(c.name, c.qualified), "%+v", c)
	}
}

// FuzzQualify finds pairs that have the same text, that are not read back, or that should
// have been refused.
func FuzzQualify(f *testing.F) {
	f.Add("default", "t", "acme", "t")
	f.Add("acme", "t", "default", "acme@t")
	f.Add("a", "b@c", "a@b", "c")
	f.Add("", "a", "a", "")
	f.Fuzz(func(t *testing.T, name, id, otherName, otherID string) {
		text, err := tenant.Qualify(name, id)
		if err != nil {
			require.Empty(t, text)
			return
		}
		require.NoError(t, tenant.CheckName(name))
		require.Regexp(t, `^[A-Za-z0-9_.:-]{1,64}$`, name)
		require.NotEmpty(t, id)
		require.NotContains(t, id, string(tenant.Separator))
		gotName, gotID := tenant.Split(text)
		require.Equal(t, [2]string{name, id}, [2]string{gotName, gotID})
		require.True(t, tenant.Contains(name, text))
		other, err := tenant.Qualify(otherName, otherID)
		if err != nil {
			return
		}
		require.Equal(t, name == otherName && id == otherID, text == other, "%q and %q", text, other)
		require.Equal(t, name == otherName, tenant.Contains(name, other))
	})
}
