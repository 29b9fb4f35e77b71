// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
)

var shared = controlplanetest.Shared{}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// world is a namespace and a class of a real server, with users who create and delete at random.
type world struct {
	t                *testing.T
	random           *rand.Rand
	namespace, class string
	claims           client.Typed[*corev1.PersistentVolumeClaim]
	volumes          client.Typed[*corev1.PersistentVolume]
	made             int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	cluster := shared.Get(t)
	seed := rand.Uint64()
	t.Logf("the seed is %d", seed)
	namespace := cluster.Namespace(t)
	w := &world{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), namespace: namespace, class: "of-" + namespace,
		claims:  client.For[*corev1.PersistentVolumeClaim](cluster.Client),
		volumes: client.For[*corev1.PersistentVolume](cluster.Client),
	}
	t.Cleanup(w.clear)
	return w
}

// fail ends the test at an error, unless it says that something has changed or gone meanwhile.
func (w *world) fail(err error) {
	w.t.Helper()
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		w.t.Fatal(err)
	}
}

// step does what one of several users does.
func (w *world) step() {
	w.t.Helper()
	switch w.random.IntN(7) {
	case 0, 1:
		w.claim(fmt.Sprint("c", w.number()), "")
	case 2, 3:
		w.volume(fmt.Sprint("v", w.number()), "")
	case 4: // a pair that a user chose, from one side or from both
		name := fmt.Sprint("p", w.number())
		volume, claim := w.namespace+"-"+name, name
		switch w.random.IntN(3) {
		case 0:
			claim = ""
		case 1:
			volume = ""
		}
		w.claim(name, volume)
		w.volume(name, claim)
	default:
		w.delete()
	}
}

func (w *world) number() int {
	w.made++
	return w.made
}

func (w *world) claim(name, volume string) {
	w.t.Helper()
	claim := newClaim(name, ofClass(w.class), naming(volume))
	claim.Namespace = w.namespace
	claim.Spec.Resources.Requests = storage(fmt.Sprint(1+w.random.IntN(3), "Gi"))
	_, err := w.claims.Create(w.t.Context(), claim)
	w.fail(err)
}

func (w *world) volume(name, claim string) {
	w.t.Helper()
	volume := newVolume(w.namespace+"-"+name, fmt.Sprint(1+w.random.IntN(4), "Gi"), inClass(w.class))
	if w.random.IntN(2) == 0 {
		volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	}
	if claim != "" {
		volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: w.namespace, Name: claim}
	}
	_, err := w.volumes.Create(w.t.Context(), volume)
	w.fail(err)
}

// delete deletes a claim, as if no Pod used it.
func (w *world) delete() {
	w.t.Helper()
	all, _, err := w.claims.List(w.t.Context(), client.Selection{Namespace: w.namespace})
	w.fail(err)
	if len(all) == 0 {
		return
	}
	claim := all[w.random.IntN(len(all))]
	patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"finalizers": nil}})
	w.fail(err)
	_, err = w.claims.Patch(w.t.Context(), object.KeyOf(claim), patch)
	w.fail(err)
	w.fail(w.claims.Delete(w.t.Context(), object.KeyOf(claim), client.IfUID(claim.UID)))
}

// unsettled returns what the controller still has to do, or "".
func (w *world) unsettled() string {
	claims, _, err := w.claims.List(w.t.Context(), client.Selection{Namespace: w.namespace})
	if err != nil {
		return err.Error()
	}
	all, _, err := w.volumes.List(w.t.Context(), client.Selection{})
	if err != nil {
		return err.Error()
	}
	var mine []*corev1.PersistentVolume
	for _, volume := range all {
		if volumes.ClassOfVolume(volume) == w.class {
			mine = append(mine, volume)
		}
	}
	for _, volume := range mine {
		if volume.Status.Phase == "" || volume.Status.Phase == corev1.VolumePending {
			return "volume " + volume.Name + " has no phase"
		}
		for _, claim := range claims {
			if isWaiting(claim) && (isFree(volume) || volumes.Refers(volume, claim)) && fits(volume, claim) == nil {
				return fmt.Sprintf("claim %s has no volume, and volume %s fits", claim.Name, volume.Name)
			}
		}
	}
	for _, claim := range claims {
		if claim.Spec.VolumeName != "" && claim.Annotations[volumes.BindCompleted] != "" && claim.Status.Phase != corev1.ClaimBound {
			return "the binding of claim " + claim.Name + " is not complete"
		}
	}
	return ""
}

// clear removes the volumes, which belong to no namespace.
func (w *world) clear() {
	ctx := context.WithoutCancel(w.t.Context())
	all, _, err := w.volumes.List(ctx, client.Selection{})
	if err != nil {
		w.t.Error(err)
	}
	patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"finalizers": nil}})
	if err != nil {
		w.t.Error(err)
	}
	for _, volume := range all {
		if volumes.ClassOfVolume(volume) != w.class {
			continue
		}
		_, err := w.volumes.Patch(ctx, object.KeyOf(volume), patch)
		if err == nil {
			err = w.volumes.Delete(ctx, object.KeyOf(volume))
		}
		if err != nil && !apierrors.IsNotFound(err) {
			w.t.Error(err)
		}
	}
}

// The safety of the binder does not depend on what a process remembers: it is killed again and
// again while users create and delete claims and volumes.
func TestOverARandomHistoryWithKillsEachClaimHasOneVolume(t *testing.T) {
	cluster := shared.Get(t)
	config := cluster.Restricted(t, Rights())
	w := newWorld(t)
	h := follow(t, w.namespace, w.class)
	for range 12 {
		p := managertest.Run(t, config, managertest.Making(New, Defaults()))
		for range 4 + w.random.IntN(10) {
			w.step()
		}
		if w.random.IntN(3) == 0 {
			controlplanetest.Eventually(t, "nothing is left to do", func() bool { return w.unsettled() == "" })
		}
		p.Kill()
	}
	managertest.Run(t, config, managertest.Making(New, Defaults()))
	last := ""
	controlplanetest.Eventually(t, "nothing is left to do at the end", func() bool {
		if now := w.unsettled(); now != last {
			t.Log(now)
			last = now
		}
		return last == ""
	})
	all := h.sorted()
	for _, broken := range check(all) {
		t.Error(broken)
	}
	if len(all) < 100 {
		t.Errorf("only %d states were seen", len(all))
	}
	t.Logf("%d states", len(all))
}
