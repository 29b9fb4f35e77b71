// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/page"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// rolledOut is a source in which a user has just given Deployment shop/web another image.
func rolledOut(t testing.TB) *source {
	t.Helper()
	s := newSource(t)
	now := time.Now()
	edited := metav1.NewTime(now.Truncate(time.Second))
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "d", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "kubectl-set", Operation: metav1.ManagedFieldsOperationUpdate, Time: &edited, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:spec":{}}}}`),
		}},
	}}
	if err := s.resource["deployments"].Put(web); err != nil {
		t.Fatal(err)
	}
	deployment := runs.Object{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "d"}
	set := runs.Object{Group: "apps", Kind: "ReplicaSet", Namespace: "shop", Name: "web-2", UID: "r"}
	gone := runs.Object{Kind: "Pod", Namespace: "shop", Name: "web-1-gone", UID: "p"}
	add(t, s, "deployment-controller", deployment, now, "10", deployment, runs.Write{Verb: "create", Object: set, Version: "11"})
	add(t, s, "replicaset-controller", set, now, "11", set, runs.Write{Verb: "delete", Object: gone})
	return s
}

// add adds a run that a change of an object caused.
func add(t testing.TB, s *source, controller string, of runs.Object, at time.Time, version string, cause runs.Object, writes ...runs.Write) {
	t.Helper()
	change := workqueue.Cause{Source: "informer", Verb: workqueue.Updated, Ref: cause.Ref(), Version: version}
	loop := s.record.Loop(controller, of.Group, of.Kind)
	runs.Add(loop, of.Ref().Key, &runs.Ended{Began: at, Outcome: runs.Done, Causes: causeOf(t, change), Writes: writes})
}

// The view has a group with its title and its author, a line for each change, and the objects that do not exist any more
// as links.
func TestWhatHappened(t *testing.T) {
	w := get(t, newPage(rolledOut(t)), "/changes?namespace=shop")
	if w.Code != http.StatusOK {
		t.Fatalf("the view is answered with %d:\n%s", w.Code, w.Body)
	}
	for _, want := range []string{
		"rollout of web", "3 changes, probably by kubectl-set", `href="/o/core/Pod/shop/web-1-gone?run=2-`, `href="/o/core/Pod/shop/web-1-gone"`,
		"deployment-controller, run 1", `href="/changes?namespace=shop&amp;since=15m"`, `href="/changes"`,
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the view does not have %s:\n%s", want, mainOf(t, w.Body.String()))
		}
	}
}

func TestTheAddressOfWhatHappenedIsChecked(t *testing.T) {
	p := newPage(newSource(t))
	for query, code := range map[string]int{
		"": 200, "?since=1h": 200, "?since=yesterday": 400, "?since=0s": 400, "?since=48h": 400, "?namespace=a%2Fb": 400, "?namespace=" + strings.Repeat("a", 300): 400,
	} {
		if w := get(t, p, "/changes"+query); w.Code != code {
			t.Errorf("/changes%s is answered with %d, want %d", query, w.Code, code)
		}
	}
}

// A viewer sees the changes of kinds that the viewer may get, and the names of the others stay hidden.
func TestWhatHappenedShowsWhatAViewerMaySee(t *testing.T) {
	p := page.New(rolledOut(t), page.Options{Viewer: func(*http.Request) page.Viewer { return only{"replicasets"} }})
	body := get(t, p, "/changes?namespace=shop").Body.String()
	if !strings.Contains(body, "web-2") || strings.Contains(body, "web-1-gone") || strings.Contains(body, "kubectl-set") {
		t.Errorf("a viewer who may get ReplicaSets alone sees:\n%s", mainOf(t, body))
	}
	if !strings.Contains(body, "Not shown, as you may not get them: Deployment") {
		t.Errorf("the view does not say what it leaves out:\n%s", mainOf(t, body))
	}
	if body = get(t, p, "/search?q=web").Body.String(); strings.Contains(body, "shop/web<") || strings.Contains(body, "web-1-gone") {
		t.Errorf("the search shows what the viewer may not get:\n%s", mainOf(t, body))
	}
}

// only is a viewer who may get one kind.
type only struct{ plural string }

func (o only) MayGet(_ context.Context, r object.Resource, _ object.Key) (bool, error) {
	return r.Plural == o.plural, nil
}

// A search finds objects by a part of their names, those of one kind, and those that only the record has.
func TestSearch(t *testing.T) {
	p := newPage(rolledOut(t))
	for q, want := range map[string]string{
		"web": "Deployment shop/web", "deployments": "Deployment shop/web", "deployments/we": "Deployment shop/web", "Deployment": "Deployment shop/web",
		"gone": "Pod shop/web-1-gone does not exist any more", "nobody": "Nothing is found.", "": "Enter a name",
	} {
		w := get(t, p, "/search?"+url.Values{"q": {q}}.Encode())
		if text := textOf(mainOf(t, w.Body.String())); w.Code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("the search for %q is answered with %d and\n%s\nwant %q", q, w.Code, text, want)
		}
	}
	if w := get(t, p, "/search?q="+strings.Repeat("x", 300)); w.Code != http.StatusBadRequest {
		t.Errorf("a long search is answered with %d", w.Code)
	}
}

// textOf returns the text of HTML, on one line.
func textOf(html string) string {
	var b strings.Builder
	inside := false
	for _, r := range html {
		switch {
		case r == '<':
			inside = true
		case r == '>':
			inside = false
		case !inside:
			b.WriteRune(r)
		}
	}
	return strings.Join(strings.Fields(strings.NewReplacer("&#34;", `"`).Replace(b.String())), " ")
}

// Without a manager the views say what is not known, and show what the cluster knows.
func TestWhatHappenedWithoutARecord(t *testing.T) {
	s := rolledOut(t)
	body := get(t, newPage(unrecorded{s}), "/changes").Body.String()
	for _, want := range []string{"rollout of shop/web", "what controllers did and why: no manager answers", "in all namespaces"} {
		if !strings.Contains(textOf(body), want) {
			t.Errorf("the view does not say %q:\n%s", want, textOf(body))
		}
	}
}

// unrecorded is a source whose record cannot be read.
type unrecorded struct{ *source }

func (unrecorded) Record() gather.Record { return gather.None("no manager answers") }

// Names and messages of objects are text, whatever they hold.
func TestWhatHappenedEscapesTexts(t *testing.T) {
	s := newSource(t)
	hostile := runs.Object{Kind: "Pod", Namespace: "shop", Name: "<script>alert(1)</script>\u202e\x1b[31m\" onclick=\"x"}
	add(t, s, "<b>controller</b>", hostile, time.Now(), "1", hostile, runs.Write{Verb: "create", Object: hostile, Version: "2", Fields: []string{"<i>field</i>"}})
	for _, path := range []string{"/changes", "/search?q=" + url.QueryEscape("<script>"), "/search?q=" + url.QueryEscape(hostile.Name)} {
		body := get(t, newPage(s), path).Body.String()
		for _, no := range []string{"<script>alert", "<b>controller", "<i>field", "\u202e", "\x1b", `" onclick="x"`} {
			if strings.Contains(body, no) {
				t.Errorf("%s has %q:\n%s", path, no, mainOf(t, body))
			}
		}
	}
}

func BenchmarkWhatHappened(b *testing.B) {
	s := newSource(b)
	for i := range 5000 {
		pod := runs.Object{Kind: "Pod", Namespace: "shop", Name: fmt.Sprint("web-", i), UID: "u"}
		add(b, s, "replicaset-controller", runs.Object{Group: "apps", Kind: "ReplicaSet", Namespace: "shop", Name: fmt.Sprint("set-", i/10)}, time.Now(), "1", pod,
			runs.Write{Verb: "create", Object: pod, Version: fmt.Sprint(i + 2)})
	}
	for b.Loop() {
		get(b, newPage(s), "/changes?namespace=shop")
	}
}

// The frame of the view is there while the API server is still asked, and the content follows. A problem that comes after the
// frame stands in it.
func TestTheFrameOfWhatHappenedDoesNotWaitForItsContent(t *testing.T) {
	for _, test := range []struct{ name, fails, want string }{
		{name: "content", want: "rollout of web"},
		{name: "problem", fails: "/api", want: "the API server does not say which kinds it serves"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := rolledOut(t)
			asked := make(chan struct{})
			config := s.resource["pods"].Config()
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					<-asked
					if r.URL.Path == test.fails {
						return nil, errors.New("no route to host")
					}
					return next.RoundTrip(r)
				})
			})
			var err error
			if s.client, err = client.New(config); err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(newPage(s))
			defer server.Close()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/changes?namespace=shop", nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = answer.Body.Close() }()
			var html strings.Builder
			lines := bufio.NewScanner(answer.Body)
			for lines.Scan() {
				fmt.Fprintln(&html, lines.Text())
				if strings.Contains(lines.Text(), "Asking the API server") {
					break
				}
			}
			if frame := html.String(); !strings.Contains(frame, `aria-current="page">What happened`) || strings.Contains(frame, "<main") {
				t.Errorf("the frame is\n%s", frame)
			}
			close(asked)
			for lines.Scan() {
				fmt.Fprintln(&html, lines.Text())
			}
			if main := mainOf(t, html.String()); !strings.Contains(main, test.want) || strings.Count(html.String(), "<html") != 1 || !strings.HasSuffix(html.String(), "</html>\n") {
				t.Errorf("the whole page is\n%s", html.String())
			}
		})
	}
	if w := get(t, newPage(rolledOut(t)), "/changes?since=never"); w.Code != http.StatusBadRequest || strings.Contains(w.Body.String(), "Asking") {
		t.Errorf("an address that chooses nothing is answered with %d:\n%s", w.Code, w.Body)
	}
}

// roundTripper makes a function an [http.RoundTripper].
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
