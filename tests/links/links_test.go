package links_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/testkit/built"
	"github.com/graphd-dev/graphd/tests/harness"
)

const (
	answeredState = graphdv1.InterruptState_INTERRUPT_STATE_ANSWERED
	consumedState = graphdv1.InterruptState_INTERRUPT_STATE_CONSUMED
	openState     = graphdv1.InterruptState_INTERRUPT_STATE_OPEN
)

// What reads links, like a mail scanner, changes nothing.
func TestReadingALinkChangesNothing(t *testing.T) {
	f := start(t)
	q := f.ask(t, "ana", "free", "order-7")
	link := f.link(t, "mail", q, linkFor("carol@example.com"))
	before, trail := f.read(t, q), f.trail(t, q)
	first := get(t, link)
	require.Equal(t, http.StatusOK, first.code, first.body)
	for range 100 {
		require.Equal(t, first.body, get(t, link).body)
		head := send(t, http.MethodHead, link, "")
		require.Equal(t, http.StatusOK, head.code)
		require.Empty(t, head.body)
		require.Equal(t, first.header.Get("Content-Length"), head.header.Get("Content-Length"))
	}
	for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions} {
		require.Equal(t, http.StatusMethodNotAllowed, send(t, method, link, "").code)
	}
	require.True(t, proto.Equal(before, f.read(t, q)))
	require.Len(t, f.trail(t, q), len(trail))
}

func TestALinkAnswers(t *testing.T) {
	f := start(t)
	q := f.ask(t, "ana", "free", "order-7")
	link := f.link(t, "mail", q, linkFor("carol@example.com", "finance"))
	page := get(t, link)
	for _, text := range []string{"Refund 8841?", "carol@example.com", ">approved<", ">rejected<", "<dt>order</dt>", "8841"} {
		require.Contains(t, page.body, text)
	}
	sent := post(t, link, "v.0", "0", "v.1", "12", "note", "by phone")
	require.Equal(t, http.StatusSeeOther, sent.code, sent.body)
	require.True(t, strings.HasSuffix(link, "/a/"+sent.header.Get("Location")))
	now := f.read(t, q)
	require.JSONEq(t, `{"decision": "approved", "amount": 12}`, now.GetResponse().GetJson())
	require.Equal(t, []string{"carol@example.com", "link", "graphd.v1.GraphService/ResumeRun", "by phone"},
		[]string{now.GetResponder(), now.GetResponderHow(), now.GetResponseMethod(), now.GetNote()})
	var answered *graphdv1.TrailEntry
	for _, e := range f.trail(t, q) {
		if e.GetKind() == graphdv1.TrailKind_TRAIL_KIND_ANSWERED {
			answered = e
		}
	}
	require.Equal(t, "carol@example.com", answered.GetPrincipal())
	require.Equal(t, "link", answered.GetPrincipalHow())
	done := get(t, link)
	require.Equal(t, http.StatusOK, done.code)
	require.Contains(t, done.body, "your answer is stored")
	require.NotContains(t, done.body, "Take it back")

	f.drain()
	byDoor := map[string]map[string]any{}
	for _, r := range f.records(t) {
		if r["method"] == "graphd.v1.GraphService/ResumeRun" || r["method"] == "graphd.v1.InterruptService/MakeLink" {
			door, ok := r["door"].(string)
			require.True(t, ok)
			byDoor[door] = r
		}
	}
	require.Equal(t, "carol@example.com", byDoor["link"]["principal"])
	require.Equal(t, "link", byDoor["link"]["how"])
	require.Equal(t, "order-7", byDoor["link"]["thread"])
	require.Equal(t, "mail", byDoor["grpc"]["principal"])
}

// An answer by link comes through the door of all answers.
func TestThePolicyHoldsForLinks(t *testing.T) {
	f := start(t)
	for name, c := range map[string]struct {
		graph, person string
		groups        []string
		text          string
	}{
		"the requester":   {"own", "ana", nil, "asked for this yourself"},
		"of no group":     {"people", "carol", nil, "for other people"},
		"its requester":   {"people", "ana", []string{"finance"}, "asked for this yourself"},
		"another group":   {"people", "carol", []string{"sales"}, "for other people"},
		"another in list": {"own", "carol", []string{"finance"}, "for other people"},
	} {
		t.Run(name, func(t *testing.T) {
			q := f.ask(t, "ana", c.graph, strings.ReplaceAll(name, " ", "-"))
			control := "v"
			got := post(t, f.link(t, "mail", q, linkFor(c.person, c.groups...)), control, "0")
			require.Equal(t, http.StatusForbidden, got.code, got.body)
			require.Contains(t, got.body, c.text)
			require.Equal(t, openState, f.read(t, q).GetState())
			require.Empty(t, f.read(t, q).GetVotes())
		})
	}
}

func TestVotesByLink(t *testing.T) {
	f := start(t)
	q := f.ask(t, "ana", "people", "pay-1")
	carol := f.link(t, "mail", q, func(r *graphdv1.MakeLinkRequest) { linkFor("carol", "finance")(r); r.Bound = true })
	dora, frank := f.link(t, "mail", q, linkFor("dora", "finance")), f.link(t, "mail", q, linkFor("frank", "finance"))
	require.Contains(t, get(t, dora).body, "2 people must agree; 0 answered so far")
	require.Equal(t, http.StatusSeeOther, post(t, dora, "v", "0").code)
	require.Contains(t, get(t, dora).body, "Take it back")
	changed := get(t, carol)
	require.Equal(t, http.StatusConflict, changed.code)
	require.Contains(t, changed.body, "has changed")
	require.Equal(t, http.StatusSeeOther, send(t, http.MethodPost, dora, "do=undo").code)
	require.Empty(t, f.read(t, q).GetVotes())
	require.Equal(t, http.StatusSeeOther, post(t, dora, "v", "0").code)
	require.Equal(t, http.StatusSeeOther, post(t, frank, "v", "0").code)
	require.JSONEq(t, `"yes"`, f.read(t, q).GetResponse().GetJson())
	late := f.read(t, q)
	require.Contains(t, []graphdv1.InterruptState{answeredState, consumedState}, late.GetState())
}

// Every reason has a page and a status of its own, and stores nothing.
func TestReasonsHavePages(t *testing.T) {
	f := start(t)
	answer := func(t *testing.T, q *graphdv1.Interrupt) {
		t.Helper()
		_, err := f.ResumeRun(f.as(t, "chief"), &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
			ThreadId: q.GetThreadId(), Responses: []*graphdv1.InterruptResponse{{
				InterruptId: q.GetInterruptId(), Outcome: &graphdv1.InterruptResponse_Value{Value: harness.NewPayload(`{"decision": "rejected"}`)},
			}},
		}})
		require.NoError(t, err)
	}
	reassign := func(t *testing.T, q *graphdv1.Interrupt) {
		t.Helper()
		_, err := f.UpdateInterrupt(f.as(t, "chief"), &graphdv1.UpdateInterruptRequest{
			Interrupt: &graphdv1.Interrupt{ThreadId: q.GetThreadId(), InterruptId: q.GetInterruptId(), Assignees: []string{"ben"}},
		})
		require.NoError(t, err)
	}
	cancel := func(t *testing.T, q *graphdv1.Interrupt) {
		t.Helper()
		_, err := f.CancelRun(f.as(t, "chief"), &graphdv1.CancelRunRequest{ThreadId: q.GetThreadId()})
		require.NoError(t, err)
	}
	remove := func(t *testing.T, q *graphdv1.Interrupt) {
		t.Helper()
		_, err := f.DeleteThread(f.as(t, "chief"), &graphdv1.DeleteThreadRequest{ThreadId: q.GetThreadId(), Force: true})
		require.NoError(t, err)
	}
	for name, c := range map[string]struct {
		graph  string
		bound  bool
		happen func(*testing.T, *graphdv1.Interrupt)
		code   int
		text   string
	}{
		"answered":             {"free", false, answer, 409, "answered on"},
		"answered, bound":      {"free", true, answer, 409, "answered on"},
		"reassigned and bound": {"free", true, reassign, 409, "has changed"},
		"cancelled":            {"free", false, cancel, 410, "not asked any more"},
		"deleted":              {"free", false, remove, 410, "is gone"},
		"expired": {"brief", false, func(t *testing.T, q *graphdv1.Interrupt) {
			t.Helper()
			require.Eventually(t, func() bool { return f.read(t, q).GetState() != openState }, time.Minute, 10*time.Millisecond)
		}, 410, "time to answer is over"},
	} {
		t.Run(name, func(t *testing.T) {
			q := f.ask(t, "ana", c.graph, strings.NewReplacer(" ", "-", ",", "").Replace("r-"+name))
			link := f.link(t, "mail", q, func(r *graphdv1.MakeLinkRequest) { linkFor("carol")(r); r.Bound = c.bound })
			control := "v.0"
			if c.graph == "brief" {
				control = "v"
			}
			form := fill(t, get(t, link), control, "0")
			c.happen(t, q)
			for _, got := range []response{send(t, http.MethodPost, link, form), get(t, link)} {
				require.Equal(t, c.code, got.code, got.body)
				require.Contains(t, got.body, c.text)
				require.NotContains(t, got.body, "chief", "who has answered is not told")
				require.NotContains(t, got.body, "<form")
			}
		})
	}
	q := f.ask(t, "ana", "free", "moved")
	link := f.link(t, "mail", q, linkFor("carol"))
	reassign(t, q)
	require.Equal(t, http.StatusSeeOther, post(t, link, "v.0", "0").code, "assignees refuse no caller, and the link is not bound")
}

func TestWhatIsNoLinkLooksTheSame(t *testing.T) {
	f := start(t)
	q := f.ask(t, "ana", "free", "order-7")
	link := f.link(t, "mail", q, linkFor("carol"))
	token := link[strings.LastIndexByte(link, '/')+1:]
	var bodies []string
	for i := 0; i < len(token); i += 7 {
		changed := []byte(token)
		changed[i] = 'A' + (changed[i]+1)%26
		if string(changed) == token {
			continue
		}
		got := get(t, f.links+"/a/"+string(changed))
		require.Equal(t, http.StatusNotFound, got.code)
		bodies = append(bodies, got.body)
	}
	for _, path := range []string{"/", "/a/", "/a", "/favicon.ico", "/a/" + token + "/", "/b/" + token, "/a/../a/x", "/metrics"} {
		got := get(t, f.links+path)
		require.Equal(t, http.StatusNotFound, got.code, path)
		bodies = append(bodies, got.body)
	}
	for _, body := range bodies {
		require.Equal(t, bodies[0], body)
	}
	require.Equal(t, openState, f.read(t, q).GetState())
}

func TestLinksExpire(t *testing.T) {
	f := start(t)
	q := f.ask(t, "ana", "free", "order-7")
	link := f.link(t, "mail", q, func(r *graphdv1.MakeLinkRequest) {
		linkFor("carol")(r)
		r.Valid = durationpb.New(time.Second)
	})
	require.Eventually(t, func() bool { return get(t, link).code == http.StatusGone }, time.Minute, 50*time.Millisecond)
	got := send(t, http.MethodPost, link, "seen="+q.GetSeen()+"&v.0=0")
	require.Equal(t, http.StatusGone, got.code)
	require.Contains(t, got.body, "link has expired")
	require.NotContains(t, got.body, "Refund", "nothing of the question is shown")
	require.Equal(t, openState, f.read(t, q).GetState())
}

func TestWhoMayMakeALink(t *testing.T) {
	f := start(t)
	q := f.ask(t, "ana", "free", "order-7")
	for name, c := range map[string]struct {
		caller string
		change func(*graphdv1.MakeLinkRequest)
		reason string
	}{
		"who answers, for itself":   {"ben", nil, ""},
		"who answers, for another":  {"ben", linkFor("carol"), "ACCESS_DENIED"},
		"who answers, by its name":  {"ben", linkFor("ben", "board"), "ACCESS_DENIED"},
		"who answers, other groups": {"ben", linkFor("", "board"), "ACCESS_DENIED"},
		"groups of no principal":    {"mail", linkFor("", "board"), "INVALID_FIELD"},
		"who reads":                 {"eve", nil, "ACCESS_DENIED"},
		"a linker, for another":     {"mail", linkFor("carol", "finance"), ""},
		"an admin":                  {"chief", linkFor("carol"), ""},
		"too long":                  {"chief", func(r *graphdv1.MakeLinkRequest) { r.Valid = durationpb.New(8 * 24 * time.Hour) }, "INVALID_FIELD"},
		"no time":                   {"chief", func(r *graphdv1.MakeLinkRequest) { r.Valid = durationpb.New(0) }, "INVALID_FIELD"},
		"a name that reorders":      {"mail", linkFor("a\u202eb"), "INVALID_FIELD"},
		"a group of two lines":      {"mail", linkFor("carol", "a\nb"), "INVALID_FIELD"},
		"another question":          {"chief", func(r *graphdv1.MakeLinkRequest) { r.InterruptId = "none" }, "INTERRUPT_NOT_FOUND"},
		"a long preset": {"chief", func(r *graphdv1.MakeLinkRequest) {
			r.Preset = harness.NewPayload(`"` + strings.Repeat("a", 1024) + `"`)
		}, "INVALID_FIELD"},
	} {
		req := &graphdv1.MakeLinkRequest{ThreadId: q.GetThreadId(), InterruptId: q.GetInterruptId()}
		if c.change != nil {
			c.change(req)
		}
		_, err := f.MakeLink(f.as(t, c.caller), req)
		if c.reason == "" {
			require.NoError(t, err, name)
			continue
		}
		require.Equal(t, c.reason, harness.ReasonOf(err), name)
	}
	own := f.link(t, "ben", q, nil)
	require.Equal(t, http.StatusSeeOther, post(t, own, "v.0", "1").code)
	require.Equal(t, "ben", f.read(t, q).GetResponder())
	_, err := f.MakeLink(f.as(t, "chief"), &graphdv1.MakeLinkRequest{ThreadId: q.GetThreadId(), InterruptId: q.GetInterruptId()})
	require.Equal(t, "INTERRUPT_ALREADY_RESOLVED", harness.ReasonOf(err))
}

func TestAnswersAreTakenBackByLink(t *testing.T) {
	f := start(t)
	q := f.ask(t, "ana", "undo", "order-7")
	link := f.link(t, "mail", q, linkFor("carol"))
	require.Equal(t, http.StatusSeeOther, post(t, link, "v", "yes").code)
	require.Contains(t, get(t, link).body, "Take it back")
	other := f.link(t, "mail", f.ask(t, "ana", "undo", "order-8"), linkFor("dora"))
	require.Contains(t, get(t, other).body, "<form")
	require.Equal(t, http.StatusSeeOther, send(t, http.MethodPost, link, "do=undo").code)
	require.Equal(t, openState, f.read(t, q).GetState())
	require.Contains(t, get(t, link).body, "Send answer")
}

func TestTwoPostsHaveOneEffect(t *testing.T) {
	f := start(t)
	q := f.ask(t, "ana", "free", "order-7")
	carol, dora := f.link(t, "mail", q, linkFor("carol")), f.link(t, "mail", q, linkFor("dora"))
	byCarol, byDora := fill(t, get(t, carol), "v.0", "0"), fill(t, get(t, dora), "v.0", "1")
	var all sync.WaitGroup
	codes := make([]int, 12)
	for i := range codes {
		all.Go(func() {
			link, form := carol, byCarol
			if i%2 == 1 {
				link, form = dora, byDora
			}
			if got, err := trySend(t, http.MethodPost, link, form); err == nil {
				codes[i] = got.code
			}
		})
	}
	all.Wait()
	now := f.read(t, q)
	for i, code := range codes {
		want := http.StatusConflict
		if (now.GetResponder() == "dora") == (i%2 == 1) {
			want = http.StatusSeeOther
		}
		require.Equal(t, want, code, "%d by %s", i, now.GetResponder())
	}
	kinds := map[graphdv1.TrailKind]int{}
	for _, e := range f.trail(t, q) {
		kinds[e.GetKind()]++
	}
	require.Equal(t, 1, kinds[graphdv1.TrailKind_TRAIL_KIND_ANSWERED])
}

// Further clicks on a link that is bound send a vote that counts already.
func TestSecondClicksByLink(t *testing.T) {
	f := start(t)
	q := f.ask(t, "ana", "people", "pay-1")
	carol := f.link(t, "mail", q, func(r *graphdv1.MakeLinkRequest) { linkFor("carol", "finance")(r); r.Bound = true })
	page := get(t, carol)
	form := fill(t, page, "v", "0")
	var all sync.WaitGroup
	codes := make([]int, 6)
	for i := range codes {
		all.Go(func() {
			if got, err := trySend(t, http.MethodPost, carol, form); err == nil {
				codes[i] = got.code
			}
		})
	}
	all.Wait()
	for _, code := range codes {
		require.Equal(t, http.StatusSeeOther, code)
	}
	require.Contains(t, get(t, carol).body, "Thank you, your answer counts")
	require.Equal(t, http.StatusConflict, send(t, http.MethodPost, carol, fill(t, page, "v", "1")).code, "another answer")
	require.Len(t, f.read(t, q).GetVotes(), 1)
}

func TestPagesAreSmallAndClosed(t *testing.T) {
	f := start(t)
	page := get(t, f.link(t, "mail", f.ask(t, "ana", "free", "order-7"), linkFor("carol")))
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(page.body))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.Less(t, packed.Len(), 12<<10)
	require.NotContains(t, page.body, "<script")
	require.NotContains(t, page.body, "http://")
	require.NotContains(t, page.body, "https://")
	require.Equal(t, 1, strings.Count(page.body, "<h1"))
	for name, text := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; style-src 'sha256-", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		"X-Content-Type-Options": "nosniff", "X-Robots-Tag": "noindex", "Content-Type": "text/html; charset=utf-8",
	} {
		require.Contains(t, page.header.Get(name), text)
	}
	require.Contains(t, page.header.Get("Content-Security-Policy"), "frame-ancestors 'none'")
}

// A link of one tenant reaches nothing in another one, which has the same ids.
func TestLinksStayInTheirTenant(t *testing.T) {
	f := start(t)
	acme := appendTenant(f.as(t, "chief"), "acme")
	_, err := f.PutGraph(acme, &graphdv1.PutGraphRequest{Definition: &graphdv1.PutGraphRequest_Document{Document: freeGraph}})
	require.NoError(t, err)
	here := f.ask(t, "ana", "free", "same")
	there := f.askIn(t, acme, "free", "same")
	made, err := f.MakeLink(acme, &graphdv1.MakeLinkRequest{ThreadId: "same", InterruptId: there.GetInterruptId(), Principal: "carol"})
	require.NoError(t, err)
	require.Equal(t, http.StatusSeeOther, post(t, made.GetUrl(), "v.0", "0").code)
	require.Equal(t, openState, f.read(t, here).GetState())
	now, err := f.GetInterrupt(acme, &graphdv1.GetInterruptRequest{ThreadId: "same", InterruptId: there.GetInterruptId()})
	require.NoError(t, err)
	require.Equal(t, "carol", now.GetResponder())
}

// A server of its own process, whose keys are exchanged.
func TestLinksOutliveServersAndKeys(t *testing.T) {
	f, flags := newFiles(t, keyLine("k1", 1))
	require.NoError(t, os.Remove(filepath.Join(f.dir, "graphs", "secret.yaml")), "it needs an encrypted store")
	store := "sqlite:" + f.dir + "/graphd.db"
	serve := func(keys string) *harness.Server {
		f.writeLinkKeys(t, keys)
		s := harness.StartServer(t, []string{built.Graphd(t)}, store, flags...)
		f.Client, f.links = s.Client, linksURL(t, s)
		return s
	}
	pathOf := func(link string) string { return strings.TrimPrefix(link, f.links) }
	s := serve(keyLine("k1", 1))
	q := f.ask(t, "ana", "free", "order-7")
	old := pathOf(f.link(t, "mail", q, linkFor("carol")))
	s.Kill()
	s = serve(keyLine("k2", 2) + keyLine("k1", 1))
	require.Equal(t, http.StatusOK, get(t, f.links+old).code)
	latest := pathOf(f.link(t, "mail", q, linkFor("carol")))
	s.Kill()
	s = serve(keyLine("k2", 2))
	require.Equal(t, http.StatusNotFound, get(t, f.links+old).code, "the key is removed")
	require.Equal(t, http.StatusSeeOther, post(t, f.links+latest, "v.0", "0").code)
	require.Equal(t, "carol", f.read(t, q).GetResponder())
	s.Kill()
}

// A client that does not finish its request is disconnected.
func TestSlowClientsAreDisconnected(t *testing.T) {
	f := start(t)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(f.links, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("GET /a/x HTTP/1.1\r\nHost: x\r\nX-Slow: "))
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = io.ReadAll(conn)
	require.NoError(t, err, "the server has closed the connection")
	require.Equal(t, http.StatusNotFound, get(t, f.links+"/a/x").code)
}

// A server without keys of links says so.
func TestServersWithoutLinksMakeNone(t *testing.T) {
	f, flags := newFiles(t, keyLine("k1", 1))
	flags = slices.DeleteFunc(slices.Clone(flags), func(flag string) bool {
		return strings.HasPrefix(flag, "--link") || flag == "127.0.0.1:0" || strings.HasSuffix(flag, "link-keys")
	})
	f.serve(t, append(flags, "--store", "memory")...)
	q := f.ask(t, "ana", "free", "order-7")
	_, err := f.MakeLink(f.as(t, "mail"), &graphdv1.MakeLinkRequest{ThreadId: q.GetThreadId(), InterruptId: q.GetInterruptId(), Principal: "carol"})
	require.Equal(t, "LINKS_NOT_CONFIGURED", harness.ReasonOf(err))
}
