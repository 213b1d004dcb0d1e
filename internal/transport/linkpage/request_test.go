package linkpage_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/link"
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

// A bound link that has ended shows nothing of the question as it is now.
func TestBoundLinksThatHaveEndedShowNothing(t *testing.T) {
	for name, values := range map[string]url.Values{
		"another digest": {"v": {"yes"}, "seen": {"x"}},
		"no answer":      {},
		"an answer":      {"v": {"yes"}},
	} {
		s := newSite(t, "", "")
		s.question.Message, s.question.Etag = "The secret of today", "5"
		s.path = s.sign(t, func(l *link.Link) { l.Etag = "4" })
		s.refusal = newRefusal(t, codes.InvalidArgument, "RESPONSE_SCHEMA_MISMATCH", nil)
		got := s.post(values)
		require.Equal(t, http.StatusConflict, got.Code, name)
		require.NotContains(t, got.Body.String(), "secret of today", name)
		require.NotContains(t, got.Body.String(), "<form", name)
	}
}

// A form that comes again after the question is over gets no form.
func TestLateFormsGetNoForm(t *testing.T) {
	s := newSite(t, "", "")
	s.question.State, s.question.Responder = graphdv1.InterruptState_INTERRUPT_STATE_CONSUMED, "carol"
	got := s.post(url.Values{"v": {"yes"}, "seen": {"digest-0"}})
	require.Equal(t, http.StatusConflict, got.Code)
	require.Contains(t, got.Body.String(), "answered already")
	require.NotContains(t, got.Body.String(), "<form")
}

func TestItIsTooLateToTakeAnAnswerBack(t *testing.T) {
	s := newSite(t, "", "")
	s.refusal = newRefusal(t, codes.FailedPrecondition, "RESPONSE_IN_EFFECT", nil)
	got := s.post(url.Values{"do": {"undo"}})
	require.Equal(t, http.StatusConflict, got.Code)
	require.Contains(t, got.Body.String(), "can&#39;t be taken back")
}

// The page after an answer says what was answered.
func TestOwnAnswersAreShown(t *testing.T) {
	for response, text := range map[string]string{`{"d": "yes <b>"}`: "<dt>d</dt><dd>yes &lt;b&gt;</dd>", `"no"`: "<dt>Your answer</dt><dd>no</dd>"} {
		s := newSite(t, "", "")
		s.question.State, s.question.Responder = graphdv1.InterruptState_INTERRUPT_STATE_CONSUMED, "carol"
		s.question.Response = newPayload(response)
		body := s.get().Body.String()
		require.Contains(t, body, text)
		require.Contains(t, body, "Refund?")
		require.Contains(t, body, "<span>refund</span>")
	}
}

// A mistake in the server is a page, and is counted.
func TestPanicsHaveAPage(t *testing.T) {
	s := newSite(t, "", "")
	s.change = func(*fakeServer) { panic("boom") }
	got := s.post(url.Values{"v": {"yes"}})
	require.Equal(t, http.StatusInternalServerError, got.Code)
	require.NotContains(t, got.Body.String(), "boom")
	require.Equal(t, 1, s.outcomes["internal"])
	require.Len(t, s.panics, 1, "it is logged")
	require.Contains(t, s.panics[0], "boom")
}

// A second click on a bound link sends an answer that counts already.
func TestSecondClicksShowTheAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		voter, vote, sent string
		secret            []string
		code              int
	}{
		"the same answer":        {"carol", `"yes"`, "yes", nil, http.StatusSeeOther},
		"as it is shown":         {"carol", `{"a": 1, "pin": {"__redacted__": true}}`, `{"pin": "7777", "a": 1}`, []string{"/pin"}, http.StatusSeeOther},
		"another answer":         {"carol", `"no"`, "yes", nil, http.StatusConflict},
		"that of another person": {"ben", `"yes"`, "yes", nil, http.StatusConflict},
	} {
		for _, isLate := range []bool{false, true} { // the first one was stored before, or while, the second came
			s := newSite(t, "", "")
			s.path = s.sign(t, func(l *link.Link) { l.Etag = "4" })
			s.question.Secret = c.secret
			store := func(f *fakeServer) {
				f.question.Etag, f.question.Votes = "5", []*graphdv1.Vote{{Principal: c.voter, Value: newPayload(c.vote)}}
			}
			if s.refusal = newRefusal(t, codes.Aborted, "ETAG_MISMATCH", nil); isLate {
				s.change = store
			} else {
				store(s.fakeServer)
			}
			got := s.post(url.Values{"v": {c.sent}})
			require.Equal(t, c.code, got.Code, name)
			require.NotContains(t, got.Body.String(), "<form", name)
			if c.code == http.StatusSeeOther {
				require.Equal(t, 1, s.outcomes["answered"], name)
				require.Contains(t, s.get().Body.String(), "Thank you, your answer counts", name)
				continue
			}
			require.Contains(t, got.Body.String(), "Ask for a new link", name)
			require.Equal(t, 1, s.outcomes["changed"], name)
		}
	}
}

// Each page is counted once.
func TestPagesAreCounted(t *testing.T) {
	s := newSite(t, "", "")
	s.get()
	s.post(url.Values{"v": {" "}})
	s.post(url.Values{"v": {"yes"}, "seen": {"digest-0"}})
	s.post(url.Values{"v": {"yes"}})
	s.post(url.Values{"do": {"undo"}})
	s.question.State, s.question.Responder = graphdv1.InterruptState_INTERRUPT_STATE_CONSUMED, "carol"
	s.get()
	want := map[string]int{"shown": 1, "invalid": 1, "changed": 1, "answered": 1, "undone": 1, "own_answer": 1}
	require.Equal(t, want, s.outcomes)
}

// Who comes when all places are taken is told so.
func TestVisitorsBeyondTheBoundAreToldToComeAgain(t *testing.T) {
	s := newSite(t, "", "")
	entered, release := make(chan struct{}), make(chan struct{})
	s.hold = func() {
		entered <- struct{}{}
		<-release
	}
	var visitors sync.WaitGroup
	for range 32 { // as many as are served at a time
		visitors.Go(func() { s.get() })
	}
	for range 32 {
		<-entered
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // waits no longer
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, s.path, nil).WithContext(ctx))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), "Many people")
	require.NotEmpty(t, w.Header().Get("Retry-After"))
	require.Equal(t, 1, s.outcomes["busy"])
	close(release)
	visitors.Wait()
}
