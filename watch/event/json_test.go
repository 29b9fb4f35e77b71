// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package event_test

import (
	"encoding/json"
	"math"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
)

func TestWhatWasEncodedIsDecodedAsItWas(t *testing.T) {
	for name, e := range examples() {
		t.Run(name, func(t *testing.T) {
			b, err := event.Encode(e, true)
			if err != nil {
				t.Fatal(err)
			}
			got, err := event.Decode(b)
			if err != nil {
				t.Fatal(err)
			}
			want := *e
			want.Time = want.Time.UTC()
			want.Authors = nil
			for _, a := range e.Authors {
				a.Time = a.Time.UTC()
				want.Authors = append(want.Authors, a)
			}
			if !reflect.DeepEqual(got, &want) {
				t.Errorf("decoded %+v\nwant    %+v", got, &want)
			}
		})
	}
}

func TestOneEncodingWhereverItIsMade(t *testing.T) {
	here := examples()["updated"]
	there := *here
	there.Time = here.Time.UTC()
	a, err := event.Encode(here, false)
	if err != nil {
		t.Fatal(err)
	}
	b, err := event.Encode(&there, false)
	if err != nil {
		t.Fatal(err)
	}
	if string(a) != string(b) {
		t.Errorf("in one zone %s, in another %s", a, b)
	}
}

func TestObjectsAreLeftOutUnlessAskedFor(t *testing.T) {
	b, err := event.Encode(examples()["settled"], false)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), `"old"`) || strings.Contains(string(b), `"new"`) {
		t.Errorf("objects are in %s", b)
	}
}

func TestAnEventIsOneLineOfPlainText(t *testing.T) {
	e := *examples()["updated"]
	e.Fields = []event.Field{{Path: "data.x", Op: event.Add, To: "a\nb <&> \x1b[31m", Class: event.Content}}
	b, err := event.Encode(&e, false)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(string(b), "\n\x1b") {
		t.Errorf("control characters in %q", b)
	}
	if !strings.Contains(string(b), "<&>") {
		t.Errorf("< and > were escaped in %s", b)
	}
	c, err := event.CloudEvent(&e, "", false)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(c), string(b)) {
		t.Errorf("the data of %s is not %s", c, b)
	}
}

func TestWhatCannotBeEncodedIsAnErrorThatNamesTheObject(t *testing.T) {
	e := *examples()["updated"]
	e.Fields = []event.Field{{Path: "spec.x", Op: event.Add, To: math.NaN()}}
	if _, err := event.Encode(&e, false); err == nil || !strings.Contains(err.Error(), "deployments.apps team-a/web") {
		t.Errorf("the error is %v", err)
	}
	if _, err := event.CloudEvent(&e, "", false); err == nil {
		t.Error("a CloudEvent was made of it")
	}
}

func TestWhatIsNoEventIsRefused(t *testing.T) {
	for name, test := range map[string]struct{ data, want string }{
		"no JSON":           {`{`, "decoding an event"},
		"another thing":     {`{"kind":"Pod"}`, `its schema is "", this reads "setpoint.io/watch/v1"`},
		"a later form":      {`{"schema":"setpoint.io/watch/v9"}`, `its schema is "setpoint.io/watch/v9"`},
		"no name":           {`{"schema":"setpoint.io/watch/v1","verb":"created","resource":"pods"}`, "no name"},
		"a time of nowhere": {`{"schema":"setpoint.io/watch/v1","time":"yesterday"}`, "decoding an event"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := event.Decode([]byte(test.data)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q in it", err, test.want)
			}
		})
	}
}

func TestWhatIsNotKnownYetIsPassedOver(t *testing.T) {
	e, err := event.Decode([]byte(`{"schema":"setpoint.io/watch/v1","verb":"renamed","apiVersion":"v1","resource":"pods",` +
		`"name":"a","classes":["colour"],"later":[1]}`))
	if err != nil {
		t.Fatal(err)
	}
	if e.Verb != "renamed" || !e.Is("colour") {
		t.Errorf("decoded %+v", e)
	}
}

func TestSourcesAreURIReferences(t *testing.T) {
	for name, test := range map[string]struct{ source, want string }{
		"nothing":             {"", "/setpoint/watch"},
		"a URL":               {"https://cluster.example.com/prod?x=1", "https://cluster.example.com/prod?x=1"},
		"a URN":               {"urn:example:prod", "urn:example:prod"},
		"a name":              {"prod", "prod"},
		"a name with a space": {"my cluster", "my%20cluster"},
		"host and port":       {"10.0.0.1:6443", "10.0.0.1%3A6443"},
		"a context of AWS":    {"arn:aws:eks:eu-1:1:cluster/my one", "arn%3Aaws%3Aeks%3Aeu-1%3A1%3Acluster%2Fmy%20one"},
		"control characters":  {"a\nb", "a%0Ab"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := event.CloudEvent(examples()["existing"], test.source, false)
			if err != nil {
				t.Fatal(err)
			}
			var c struct{ Source, Subject string }
			if err := json.Unmarshal(b, &c); err != nil {
				t.Fatal(err)
			}
			if c.Source != test.want {
				t.Errorf("the source is %q, want %q", c.Source, test.want)
			}
			if _, err := url.Parse(c.Source); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestObjectIsTheLastStateThatIsKnown(t *testing.T) {
	old, now := map[string]any{"a": "old"}, map[string]any{"a": "new"}
	for name, test := range map[string]struct {
		e    event.Event
		want map[string]any
	}{
		"created": {event.Event{New: now}, now},
		"updated": {event.Event{Old: old, New: now}, now},
		"deleted": {event.Event{Old: old}, old},
		"nothing": {event.Event{}, nil},
	} {
		if got := test.e.Object(); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// FuzzDecode holds that nothing makes Decode panic, and that what it returns can be
// encoded and is the same when it is decoded again. The first encoding may tell a number
// in another way, 1.0 as 1; from then on nothing changes.
func FuzzDecode(f *testing.F) {
	for _, e := range examples() {
		b, err := event.Encode(e, true)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"schema":"setpoint.io/watch/v1","verb":"x","resource":"x","name":"x","apiVersion":"a/b/c","new":{"a":1e300,"b":-0.0}}`))
	again := func(t *testing.T, b []byte) []byte {
		e, err := event.Decode(b)
		if err != nil {
			t.Fatalf("%v, in what was encoded: %s", err, b)
		}
		out, err := event.Encode(e, true)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := event.Decode(data)
		if err != nil {
			return
		}
		first, err := event.Encode(e, true)
		if err != nil {
			t.Fatalf("encoding what was decoded: %v", err)
		}
		second := again(t, first)
		if third := again(t, second); string(second) != string(third) {
			t.Errorf("encoded\n%s\nand then\n%s", second, third)
		}
	})
}

// TestTimesOfAnyZoneComeBackInUTC is about a time that JSON cannot hold as it is.
func TestTimesOfAnyZoneComeBackInUTC(t *testing.T) {
	e := &event.Event{
		Verb: event.Created, Kind: nodes, Key: object.Key{Name: "n"},
		Time: time.Date(2026, 3, 4, 5, 6, 7, 0, time.FixedZone("odd", 30*3600)),
	}
	if _, err := event.Encode(e, false); err != nil {
		t.Error(err)
	}
}

// An event that a sink gets without decoding it is the one that it would have decoded.
func TestDecodedIsWhatIsDecoded(t *testing.T) {
	east := time.FixedZone("east", 3600)
	all := examples()
	all["of now"] = &event.Event{
		ID: "2", Time: time.Now(), Verb: event.Updated, Kind: event.Kind{Version: "v1", Kind: "Pod", Resource: "pods"}, Key: object.Key{Name: "a"},
		Fields:  []event.Field{{Path: "spec.a", Op: event.Add, To: map[string]any{"c": []any{true, nil, 1.5, int64(2)}}, Class: event.Content}},
		Authors: []event.Author{{Manager: "m", Operation: "Update", Time: time.Now().Truncate(time.Second).In(east)}, {Manager: "timeless"}},
		Trouble: []event.Trouble{{About: "container web", Since: time.Now()}, {}},
		Merged:  2, Since: time.Now().In(east), Old: map[string]any{"a": "b"}, New: map[string]any{"a": "c"},
	}
	for name, e := range all {
		data, err := event.Encode(e, false)
		if err != nil {
			t.Fatal(err)
		}
		want, err := event.Decode(data)
		if got := event.Decoded(e); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: Decoded returns\n%+v, and Decode\n%+v, %v", name, got, want, err)
		}
	}
}
