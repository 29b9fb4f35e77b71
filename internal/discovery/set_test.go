// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

func served(group, version, kind string) client.Served {
	return client.Served{Resource: object.Resource{Group: group, Version: version, Kind: kind, Plural: kind + "s"}}
}

func names(all []client.Served) []string {
	var names []string
	for _, s := range all {
		names = append(names, fmt.Sprintf("%s/%s", s.GroupVersion(), s.Kind))
	}
	return names
}

func away(versions ...schema.GroupVersion) *client.DiscoveryError {
	e := &client.DiscoveryError{Failed: map[schema.GroupVersion]error{}}
	for _, v := range versions {
		e.Failed[v] = errors.New("away")
	}
	return e
}

func TestKindsOfAServerThatIsAwayStayAsTheyWere(t *testing.T) {
	before, ok := Set{}.With([]client.Served{
		served("", "v1", "Pod"), served("away.org", "v1", "Far"), served("gone.org", "v1", "Gone"), served("last.org", "v1", "Last"),
	}, nil)
	if !ok {
		t.Fatal("a discovery says nothing")
	}
	found := []client.Served{
		served("new.org", "v1", "New"),
		served("", "v1", "Pod"),
		served("away.org", "v1beta1", "Far"), // another version is no reason to change
		served("last.org", "v2", "Last"),
	}
	unknown := away(schema.GroupVersion{Group: "away.org", Version: "v1"})
	for name, err := range map[string]error{"alone": unknown, "wrapped": fmt.Errorf("discovering: %w", unknown)} {
		now, ok := before.With(found, err)
		if want := []string{"v1/Pod", "away.org/v1/Far", "last.org/v2/Last", "new.org/v1/New"}; !ok || !slices.Equal(names(now.Served()), want) {
			t.Errorf("%s: the kinds are %v, want %v", name, names(now.Served()), want)
		}
		if now.Unknown() != unknown || !now.IsUnknown(schema.GroupVersion{Group: "away.org", Version: "v1"}) || now.IsUnknown(schema.GroupVersion{Version: "v1"}) {
			t.Errorf("%s: unknown is %v", name, now.Unknown())
		}
		if after, ok := now.With(found, nil); !ok || !slices.Equal(names(after.Served()), names(found)) || after.Unknown() != nil {
			t.Errorf("%s: after a whole discovery the kinds are %v", name, names(after.Served()))
		}
	}
}

func TestADiscoveryThatSaysNothingChangesNothing(t *testing.T) {
	before, _ := Set{}.With([]client.Served{served("", "v1", "Pod")}, nil)
	for name, err := range map[string]error{"an error": errors.New("connection refused"), "no kinds": nil} {
		now, ok := before.With(nil, err)
		if ok || !slices.Equal(names(now.Served()), []string{"v1/Pod"}) || now.Unknown() != nil {
			t.Errorf("%s: ok %t, kinds %v, unknown %v", name, ok, names(now.Served()), now.Unknown())
		}
	}
	if _, ok := (Set{}).With(nil, away(schema.GroupVersion{Version: "v1"})); ok {
		t.Error("a first discovery without any kind counts")
	}
}

// The model: a kind is what the newest discovery says that knew its version.
func TestASetAgreesWithAModel(t *testing.T) {
	type kind struct{ group, plural string }
	rapid.Check(t, func(t *rapid.T) {
		var set Set
		model := map[kind]string{} // versions
		for i := range rapid.IntRange(1, 6).Draw(t, "discoveries") {
			var failed []schema.GroupVersion
			fails := map[schema.GroupVersion]bool{}
			for _, group := range []string{"a", "b"} {
				for _, version := range []string{"v1", "v2"} {
					v := schema.GroupVersion{Group: group, Version: version}
					if fails[v] = rapid.IntRange(0, 3).Draw(t, v.String()) == 0; fails[v] {
						failed = append(failed, v)
					}
				}
			}
			found := []client.Served{served("", "v1", "Pod")}
			now := map[kind]string{{"", "Pods"}: "v1"}
			for _, group := range []string{"a", "b"} {
				for _, name := range []string{"X", "Y"} {
					version := rapid.SampledFrom([]string{"", "v1", "v2"}).Draw(t, fmt.Sprint(i, group, name))
					if version != "" && !fails[schema.GroupVersion{Group: group, Version: version}] {
						found = append(found, served(group, version, name))
						now[kind{group, name + "s"}] = version
					}
				}
			}
			for k, version := range model {
				if fails[schema.GroupVersion{Group: k.group, Version: version}] {
					now[k] = version
				}
			}
			var err error
			if len(failed) > 0 {
				err = away(failed...)
			}
			var ok bool
			if set, ok = set.With(found, err); !ok {
				t.Fatal("the discovery says nothing")
			}
			model = now
			have := map[kind]string{}
			for _, s := range set.Served() {
				have[kind{s.Group, s.Plural}] = s.Version
			}
			if len(set.Served()) != len(model) || fmt.Sprint(have) != fmt.Sprint(model) {
				t.Fatalf("discovery %d: have %v, want %v", i, have, model)
			}
		}
	})
}

func TestEachObjectIsInOneKind(t *testing.T) {
	core, newer, custom := served("", "v1", "Event"), served("events.k8s.io", "v1", "Event"), served("example.org", "v1", "Event")
	for _, s := range []*client.Served{&core, &newer, &custom} {
		s.Plural = "events"
	}
	if got := Once([]client.Served{newer, core, custom}); !slices.Equal(names(got), []string{"v1/Event", "example.org/v1/Event"}) {
		t.Errorf("have %v", names(got))
	}
	if got := Once([]client.Served{newer, custom}); len(got) != 2 {
		t.Errorf("without Events in the core group, have %v", names(got))
	}
}

func TestOneResourceOfAKindCounts(t *testing.T) {
	second := served("example.org", "v1", "Widget")
	second.Plural = "oldwidgets"
	set, _ := Set{}.With([]client.Served{served("example.org", "v1", "Widget"), second, served("", "v1", "Pod")}, nil)
	got := set.Where(func(s client.Served) bool { return s.Group != "" })
	if len(got) != 1 || got[schema.GroupKind{Group: "example.org", Kind: "Widget"}].Plural != "Widgets" {
		t.Errorf("have %v", got)
	}
}
