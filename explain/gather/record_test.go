// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

var noon = time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC)

// recordOfWeb is a record with two runs, of which the second was caused by the first.
func recordOfWeb(t *testing.T) *runs.Record {
	t.Helper()
	record, err := runs.New(runs.LeastBytes)
	if err != nil {
		t.Fatal(err)
	}
	web := object.Key{Namespace: "shop", Name: "web"}
	runs.Add(record.Loop("deployment", "apps", "Deployment"), web, &runs.Ended{Began: noon, Outcome: runs.Done,
		Writes: []runs.Write{{Verb: "create", Version: "7", Object: runs.Object{Group: "apps", Kind: "ReplicaSet", Namespace: "shop", Name: "web-1"}}}})
	runs.Add(record.Loop("deployment", "apps", "Deployment"), web, &runs.Ended{Began: noon.Add(time.Second), Outcome: runs.Done,
		Reasons: []runs.Reason{{Code: "RolloutPaused", Text: "the rollout is paused"}}})
	return record
}

// The record of another manager answers as the one of this process.
func TestARecordElsewhereAnswersAsTheOneHere(t *testing.T) {
	here := gather.Local(recordOfWeb(t))
	about := runs.Object{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	for name, ask := range map[string]func(gather.Record) (gather.Found, error){
		"about an object": func(r gather.Record) (gather.Found, error) { return r.About(t.Context(), about) },
		"the newest":      func(r gather.Record) (gather.Found, error) { return r.Newest(t.Context(), runs.Query{}) },
		"of a controller": func(r gather.Record) (gather.Found, error) {
			return r.Newest(t.Context(), runs.Query{Controller: "deployment", Key: "shop/web", Limit: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := ask(here)
			if err != nil || len(want.Runs) == 0 {
				t.Fatalf("the record here has %+v, %v", want, err)
			}
			var asked string
			got, err := ask(gather.Remote("https://manager", func(_ context.Context, path string) (int, []byte, error) {
				asked = path
				body, err := json.Marshal(want)
				return http.StatusOK, body, err
			}))
			if err != nil {
				t.Fatal(err)
			}
			gotText, _ := json.Marshal(got)
			if wantText, _ := json.Marshal(want); string(gotText) != string(wantText) {
				t.Errorf("the answer is\n%s, want\n%s", gotText, wantText)
			}
			u, err := url.Parse(asked)
			if err != nil || u.Path != "/debug/runs" || u.Query().Get("format") != "json" {
				t.Errorf("the page %s was read (%v), want /debug/runs in JSON", asked, err)
			}
		})
	}
}

// The parameters choose what the query chooses.
func TestTheParametersOfAQuery(t *testing.T) {
	var asked url.Values
	r := gather.Remote("https://manager", func(_ context.Context, path string) (int, []byte, error) {
		u, err := url.Parse(path)
		asked = u.Query()
		return http.StatusOK, []byte("{}"), err
	})
	query := runs.Query{Namespace: "shop", Contains: "web", Wrote: true, Since: noon}
	if _, err := r.Newest(t.Context(), query); err != nil {
		t.Fatal(err)
	}
	want := url.Values{"namespace": {"shop"}, "contains": {"web"}, "wrote": {"true"}, "since": {"2026-11-23T12:00:00Z"}, "format": {"json"}}
	if !reflect.DeepEqual(asked, want) {
		t.Errorf("the parameters are %v, want %v", asked, want)
	}
	if _, err := r.Newest(t.Context(), runs.Query{Controller: "c", Key: "a/b", Limit: 7, Object: runs.Object{Kind: "Pod", Namespace: "a", Name: "b"}}); err != nil {
		t.Fatal(err)
	}
	want = url.Values{"controller": {"c"}, "key": {"a/b"}, "limit": {"7"}, "kind": {"Pod"}, "group": {""}, "namespace": {"a"}, "name": {"b"},
		"uid": {""}, "format": {"json"}}
	if !reflect.DeepEqual(asked, want) {
		t.Errorf("the parameters are %v, want %v", asked, want)
	}
}

func TestARecordThatCannotBeReadSaysWhy(t *testing.T) {
	answers := func(code int, body string, err error) gather.Record {
		return gather.Remote("https://manager", func(context.Context, string) (int, []byte, error) { return code, []byte(body), err })
	}
	for want, r := range map[string]gather.Record{
		"no manager":                           gather.None("no manager"),
		"this process does not record":         gather.Local(nil),
		"connection refused":                   answers(0, "", errors.New("connection refused")),
		"asks who you are":                     answers(http.StatusUnauthorized, "", nil),
		"answers 403 Forbidden: not you":       answers(http.StatusForbidden, "not you\n", nil),
		"this setpoint cannot read its record": answers(http.StatusOK, "<html>", nil),
		"its record has format 2, and this setpoint reads format 1 and older": answers(http.StatusOK, `{"format":2,"runs":[]}`, nil),
		"is of a newer version": answers(http.StatusOK, `{"format":99,"runs":{"not":"a list"}}`, nil),
	} {
		if _, err := r.About(t.Context(), runs.Object{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
		if _, err := r.Newest(t.Context(), runs.Query{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}
