package links_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// A text that is no UTF-8 comes by no other door, and makes a question unreadable.
func TestTextsOfAFormAreUTF8(t *testing.T) {
	f := start(t)
	q := f.ask(t, "ana", "free", "order-7")
	link := f.link(t, "mail", q, linkFor("carol"))
	got := send(t, http.MethodPost, link, fill(t, get(t, link), "v.0", "0", "note", "a\xffb"))
	_, err := f.GetInterrupt(f.as(t, "chief"), &graphdv1.GetInterruptRequest{ThreadId: q.GetThreadId(), InterruptId: q.GetInterruptId()})
	require.NoError(t, err)
	_, err = f.ListTrail(f.as(t, "chief"), &graphdv1.ListTrailRequest{ThreadId: q.GetThreadId(), InterruptId: q.GetInterruptId()})
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, got.code, got.body)
}

// The page after an answer shows no secret part of it.
func TestOwnAnswersShowNoSecret(t *testing.T) {
	f := start(t)
	q := f.ask(t, "ana", "secret", "order-7")
	link := f.link(t, "mail", q, linkFor("carol"))
	require.Equal(t, http.StatusSeeOther, post(t, link, "v.0", "DE0012", "v.1", "moved").code)
	page := get(t, link)
	require.Contains(t, page.body, "moved")
	require.Contains(t, page.body, "<dt>iban</dt><dd>(secret)</dd>")
	require.NotContains(t, page.body, "DE0012")
}
