// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/page"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// The answers carry what keeps a browser from loading and running anything else. A file is kept by the browser as long as its
// content is the same.
func TestTheHeadersOfAnswers(t *testing.T) {
	p := newPage(rollout(t))
	w := get(t, p, "/")
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
		"X-Content-Type-Options":  "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "Content-Type": "text/html; charset=utf-8",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	body := w.Body.String()
	if strings.Contains(body, " style=") || regexp.MustCompile(`<script[^>]*>[^<]`).MatchString(body) || regexp.MustCompile(`(src|href)="(https?:)?//`).MatchString(body) {
		t.Error("the page has a style or a script of its own, or loads something from another host")
	}
	for _, file := range regexp.MustCompile(`/assets/[^"]+`).FindAllString(body, -1) {
		first := get(t, p, file)
		if first.Code != http.StatusOK || !strings.Contains(first.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s is answered with %d and %q", file, first.Code, first.Header().Get("Cache-Control"))
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, file, nil)
		r.Header.Set("If-None-Match", first.Header().Get("ETag"))
		again := httptest.NewRecorder()
		if p.ServeHTTP(again, r); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%s is answered with %d for a browser that has it", file, again.Code)
		}
	}
}

// seer may get what a test says.
type seer struct {
	may func(object.Resource, object.Key) bool
}

func (s seer) MayGet(_ context.Context, r object.Resource, key object.Key) (bool, error) {
	return s.may(r, key), nil
}

func TestAUserSeesWhatTheUserMayGet(t *testing.T) {
	var may func(object.Resource, object.Key) bool
	p := page.New(rollout(t), page.Options{Base: "/page", Viewer: func(*http.Request) page.Viewer { return seer{may} }})
	const path = "/page/o/apps/deployments/shop/web"

	may = func(object.Resource, object.Key) bool { return false }
	if w := get(t, p, path); w.Code != http.StatusForbidden || strings.Contains(w.Body.String(), "keeps 8 Pods") {
		t.Errorf("a user who may not get the object gets %d\n%s", w.Code, w.Body)
	}
	may = func(r object.Resource, key object.Key) bool { return r == deployments && key.Name == "web" }
	body := get(t, p, path).Body.String()
	if !strings.Contains(body, "keeps 8 Pods") || strings.Contains(body, "web-1-x") || !strings.Contains(body, "Not shown, as you may not get them: Event, Pod, ReplicaSet.") {
		t.Errorf("a user who may get the object alone sees\n%s", body)
	}
	may = func(object.Resource, object.Key) bool { return true }
	if body := get(t, p, path).Body.String(); !strings.Contains(body, `href="/page/o/core/Pod/`) && !strings.Contains(body, "web-1-x") {
		t.Errorf("a user who may get all does not see the Pod:\n%s", body)
	}
}

// A view is sent when it is opened.
func TestAViewIsSentLive(t *testing.T) {
	s := rollout(t)
	s.overview = allWell()
	server := httptest.NewServer(newPage(s))
	defer server.Close()
	for _, path := range []string{"/live?view=%2F", "/live?view=%2Fo%2Fapps%2Fdeployments%2Fshop%2Fweb%3Frun%3D1"} {
		ctx, stop := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var event []string
		for lines := bufio.NewScanner(answer.Body); lines.Scan() && lines.Text() != ""; {
			event = append(event, lines.Text())
		}
		stop()
		_ = answer.Body.Close()
		text := strings.Join(event, "\n")
		if answer.Header.Get("Content-Type") != "text/event-stream" || event[0] != "event: view" || !strings.Contains(text, `data-part="head"`) || strings.Contains(text, "<html") {
			t.Errorf("%s: the first event is\n%s", path, text)
		}
		if strings.Contains(path, "run") && !strings.Contains(text, "Run 1 of deployment-controller") {
			t.Errorf("%s: the run is not open:\n%s", path, text)
		}
	}
}

// A user who may get an object, and not those below it, does not read their names in what controllers did either.
func TestNamesOfHiddenObjectsAreInNoRun(t *testing.T) {
	s := rollout(t)
	pod := runs.Object{Kind: "Pod", Namespace: "shop", Name: "secret-name-x", UID: "uid-secret"}
	cause := workqueue.Cause{Source: "pods", Verb: workqueue.Updated, Version: "60", Ref: pod.Ref()}
	runs.Add(s.record.Loop("deployment-controller", "apps", "Deployment"), object.Key{Namespace: "shop", Name: "web"}, &runs.Ended{
		Began: time.Now(), Outcome: runs.Again, Causes: causeOf(t, cause), Writes: []runs.Write{{Verb: "delete", Object: pod}},
		Reasons: []runs.Reason{{Code: "Waits", Text: "waits", Until: pod}, {Code: "WaitsFor", Text: "waits for secret-name-x", About: pod}}})
	runs.Add(s.record.Loop("pod-controller", "", "Pod"), pod.Ref().Key, &runs.Ended{Began: time.Now(), Outcome: runs.Failed, Error: "secret-name-x is wrong",
		Writes: []runs.Write{{Verb: "patch", Version: "61", Object: runs.Object{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "uid-web"}}}})
	began := time.Now().Add(-time.Minute)
	web := runs.Object{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "uid-web"}
	s.states = []runs.KeyState{
		{Controller: "deployment-controller", Key: "shop/web", Object: web, State: runs.StateHeld, Since: &began, Unseen: &runs.Unseen{Verb: "delete", Object: pod, Kind: "pods"}},
		{Controller: "pod-controller", Key: "shop/" + pod.Name, Object: pod, State: runs.StateHeld, Since: &began, Unseen: &runs.Unseen{Verb: "patch", Object: pod, Kind: "pods"}},
	}
	var may bool
	p := page.New(s, page.Options{Viewer: func(*http.Request) page.Viewer {
		return seer{func(r object.Resource, _ object.Key) bool { return may || r == deployments }}
	}})
	for _, path := range []string{"", "?run=3", "?run=4", "?at=" + url.QueryEscape(time.Now().UTC().Format(time.RFC3339Nano))} {
		may = true
		if body := get(t, p, "/o/apps/deployments/shop/web"+path).Body.String(); !strings.Contains(strings.ReplaceAll(body, "<wbr>", ""), "secret-name-x") {
			t.Fatalf("%s: a user who may get everything does not read the name:\n%s", path, body)
		}
		may = false
		body := get(t, p, "/o/apps/deployments/shop/web"+path).Body.String()
		if strings.Contains(strings.ReplaceAll(body, "<wbr>", ""), "secret-name-x") || !strings.Contains(body, "as you may not get them") {
			t.Errorf("%s: a user who may not get Pods reads\n%s", path, body)
		}
	}
}
