// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
)

// state is a claim or a volume at a resourceVersion.
type state struct {
	version object.Version
	gone    bool
	claim   *corev1.PersistentVolumeClaim
	volume  *corev1.PersistentVolume
}

// history collects every state of the claims of a namespace and of the volumes of a class.
type history struct {
	mu     sync.Mutex
	states []state
}

// follow begins to collect.
func follow(t *testing.T, namespace, class string) *history {
	t.Helper()
	h := &history{}
	p := managertest.Run(t, shared.Get(t).Config)
	_, err := cache.Informer[*corev1.PersistentVolumeClaim](p, cache.InNamespace(namespace)).AddHandler(func(e cache.Event[*corev1.PersistentVolumeClaim]) {
		claim, err := e.Item().Object()
		if err != nil {
			t.Error(err)
			return
		}
		h.note(state{gone: e.Kind == cache.Deleted, claim: claim, version: object.Version(claim.ResourceVersion)})
	}, cache.HandlerOptions{Name: t.Name(), EveryStep: true})
	if err != nil {
		t.Fatal(err)
	}
	_, err = cache.Informer[*corev1.PersistentVolume](p).AddHandler(func(e cache.Event[*corev1.PersistentVolume]) {
		volume, err := e.Item().Object()
		if err != nil {
			t.Error(err)
			return
		}
		if volumes.ClassOfVolume(volume) == class {
			h.note(state{gone: e.Kind == cache.Deleted, volume: volume, version: object.Version(volume.ResourceVersion)})
		}
	}, cache.HandlerOptions{Name: t.Name(), EveryStep: true})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *history) note(s state) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.states = append(h.states, s)
}

// sorted returns all states in the order in which the server has stored them.
func (h *history) sorted() []state {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.Clone(h.states)
	slices.SortStableFunc(all, func(a, b state) int { return a.version.Compare(b.version) })
	return all
}

// check replays the states and returns what no state may show.
func check(all []state) (broken []string) {
	claims, byName := map[types.UID]*corev1.PersistentVolumeClaim{}, map[string]*corev1.PersistentVolume{}
	breaks := func(s state, format string, args ...any) {
		broken = append(broken, fmt.Sprintf("resourceVersion %s: ", s.version)+fmt.Sprintf(format, args...))
	}
	for _, s := range all {
		if claim := s.claim; claim != nil {
			if claims[claim.UID] = claim; s.gone {
				delete(claims, claim.UID)
				continue
			}
			name := claim.Spec.VolumeName
			if _, completed := claim.Annotations[volumes.BindCompleted]; !completed {
				continue
			}
			for uid, other := range claims {
				if _, completed := other.Annotations[volumes.BindCompleted]; completed && uid != claim.UID && other.Spec.VolumeName == name {
					breaks(s, "volume %s is bound to the claims %s and %s", name, claim.Name, other.Name)
				}
			}
			if volume := byName[name]; claim.Status.Phase == corev1.ClaimBound && (volume == nil || volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID != claim.UID) {
				breaks(s, "claim %s is bound to volume %s, which does not refer to it", claim.Name, name)
			}
			continue
		}
		volume := s.volume
		before := byName[volume.Name]
		if byName[volume.Name] = volume; s.gone {
			delete(byName, volume.Name)
			continue
		}
		now, was := refOf(volume), refOf(before)
		if was != "" && now != "" && was != now {
			breaks(s, "volume %s goes from one claim to another", volume.Name)
		}
		owner := claims[now]
		if volume.Status.Phase == corev1.VolumeReleased && (before == nil || before.Status.Phase != corev1.VolumeReleased) &&
			owner != nil && cmp.Or(owner.Spec.VolumeName, volume.Name) == volume.Name {
			breaks(s, "volume %s is released while its claim %s lives", volume.Name, owner.Name)
		}
		if now != "" && now != was {
			for name, other := range byName {
				if name != volume.Name && refOf(other) == now && other.Annotations[volumes.BoundByController] != "" && volume.Annotations[volumes.BoundByController] != "" {
					breaks(s, "the controller has given the volumes %s and %s to one claim", name, volume.Name)
				}
			}
		}
	}
	return broken
}

// refOf returns the UID of the claim that a volume refers to.
func refOf(volume *corev1.PersistentVolume) types.UID {
	if volume == nil || volume.Spec.ClaimRef == nil {
		return ""
	}
	return volume.Spec.ClaimRef.UID
}
