package linkpage_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFormsAreUTF8(t *testing.T) {
	s := newSite(t, "", "")
	for _, body := range []string{"v=%FF", "v=yes&note=a%FF", "v=yes&v=%C3"} {
		require.Equal(t, http.StatusBadRequest, s.postText("seen=digest-1&"+body).Code, body)
	}
	require.Empty(t, s.answers)
}

// A gateway of mails may mark a link.
func TestQueriesOfLinksDoNotCount(t *testing.T) {
	for _, query := range []string{"utm=100%", "a;b", "v=other&seen=x&do=undo"} {
		s := newSite(t, "", "")
		r := httptest.NewRequest(http.MethodPost, s.path, strings.NewReader(url.Values{"v": {"yes"}, "seen": {"digest-1"}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.URL.RawQuery = query
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		require.Equal(t, http.StatusSeeOther, w.Code, query)
		require.Equal(t, `"yes"`, s.answers[0].GetValue().GetJson())
	}
}

// Clients that send or read slowly do not keep others out.
func TestSlowClientsTakeNoPlace(t *testing.T) {
	s := newSite(t, "", "")
	begun := make(chan struct{})
	for range 40 { // more than are served at a time
		body, sender := io.Pipe()
		t.Cleanup(func() { _ = sender.Close() })
		r := httptest.NewRequest(http.MethodPost, s.path, body)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		go s.handler.ServeHTTP(httptest.NewRecorder(), r)
		go func() {
			_, _ = sender.Write([]byte("v=ye"))
			begun <- struct{}{}
		}()
	}
	slow := &slowWriter{ResponseRecorder: httptest.NewRecorder(), begun: begun, end: make(chan struct{})}
	t.Cleanup(func() { close(slow.end) })
	for range 40 {
		go s.handler.ServeHTTP(slow, httptest.NewRequest(http.MethodGet, s.path, nil))
	}
	for range 80 {
		<-begun
	}
	require.Equal(t, http.StatusOK, s.get().Code)
}

// slowWriter is a client that reads nothing.
type slowWriter struct {
	*httptest.ResponseRecorder

	begun chan struct{}
	end   chan struct{}
}

func (*slowWriter) Header() http.Header { return http.Header{} }

func (*slowWriter) WriteHeader(int) {}

func (w *slowWriter) Write(b []byte) (int, error) {
	w.begun <- struct{}{}
	<-w.end
	return len(b), nil
}
