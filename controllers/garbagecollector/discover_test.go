// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

func served(group, version, kind string, verbs ...string) client.Served {
	return client.Served{Resource: object.Resource{Group: group, Version: version, Kind: kind, Plural: kind + "s"}, Verbs: verbs}
}

func said(of map[schema.GroupKind]object.Resource) []string {
	var all []string
	for _, r := range of {
		all = append(all, fmt.Sprintf("%s/%s", r.GroupVersion(), r.Kind))
	}
	slices.Sort(all)
	return all
}

func TestKindsThatCanBeDeletedListedAndWatchedAreWatchedButForEvents(t *testing.T) {
	all := []string{"get", "list", "watch", "delete"}
	got := planOf([]client.Served{
		served("", "v1", "Pod", all...),
		served("", "v1", "Event", all...),
		served("events.k8s.io", "v1", "Event", all...),
		served("example.org", "v1", "Event", all...),
		served("", "v1", "ComponentStatus", "get", "list"),
		served("authorization.k8s.io", "v1", "SubjectAccessReview", "create"),
		served("metrics.k8s.io", "v1", "Pod", "get", "list"),
	}, nil, plan{})
	if want := []string{"example.org/v1/Event", "v1/Pod"}; !slices.Equal(said(got.watched), want) {
		t.Errorf("watched are %v, want %v", said(got.watched), want)
	}
	want := []string{"events.k8s.io/v1/Event", "example.org/v1/Event", "metrics.k8s.io/v1/Pod", "v1/ComponentStatus", "v1/Event", "v1/Pod"}
	if !slices.Equal(said(got.served), want) {
		t.Errorf("served are %v, want %v", said(got.served), want)
	}
}

func TestPartialDiscoveryKeepsWhatIsWatchedAlready(t *testing.T) {
	all := []string{"get", "list", "watch", "delete"}
	before := planOf([]client.Served{
		served("", "v1", "Pod", all...), served("away.org", "v1", "Far", all...), served("gone.org", "v1", "Gone", all...),
	}, nil, plan{})
	away := &client.DiscoveryError{Failed: map[schema.GroupVersion]error{{Group: "away.org", Version: "v1"}: errors.New("away")}}
	found := []client.Served{
		served("", "v1", "Pod", all...),
		served("away.org", "v1beta1", "Far", all...), // an older version is no reason to change
		served("new.org", "v1", "New", all...),
	}
	for name, err := range map[string]error{"alone": away, "wrapped": fmt.Errorf("discovering: %w", away)} {
		now := planOf(found, err, before)
		if want := []string{"away.org/v1/Far", "new.org/v1/New", "v1/Pod"}; !slices.Equal(said(now.watched), want) || !maps.Equal(now.watched, now.served) {
			t.Errorf("%s: watched are %v and served %v, want %v", name, said(now.watched), said(now.served), want)
		}
	}
	now := planOf(found, nil, before)
	if want := []string{"away.org/v1beta1/Far", "new.org/v1/New", "v1/Pod"}; !slices.Equal(said(now.watched), want) {
		t.Errorf("after a whole discovery, watched are %v, want %v", said(now.watched), want)
	}
}

func TestOwnersThatNobodyHasSeenAreAskedForLessAndLessOften(t *testing.T) {
	if got := pause(1); got != askFirst {
		t.Errorf("the first pause is %s, want %s", got, askFirst)
	}
	for times := 2; times < 300; times++ {
		if now, before := pause(times), pause(times-1); now != min(2*before, askMost) {
			t.Errorf("after %d times the pause is %s, and was %s", times, now, before)
		}
	}
}
