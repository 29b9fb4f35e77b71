// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A manager that is killed loses all it knew: which Pods it had just asked for,
// which writes it had not seen yet. What it does next may rest only on what the
// server says.
func TestAManagerKilledAtRandomPointsOfRolloutsNeitherLosesNorAddsAPod(t *testing.T) {
	const kills = 10
	random := choices(t)
	cluster := onShared(t)
	r := deploy(t, cluster, cluster.Namespace(t))
	w := watchPods(t, cluster.Client, r.key.Namespace)
	m := manage(t, cluster)
	r.converged(w)
	w.holds(inBounds)

	// A point of a rollout is a number of changes after the manager began to
	// work, not a time: the machine may be slow. A rollout of so many Pods is
	// a hundred changes at least. One that ends before its manager is killed
	// is followed by the next.
	r.next()
	over := r.over()
	rollouts := 1
	for killed := 0; killed < kills; {
		begin, err := w.seen()
		if err != nil {
			t.Fatal(err)
		}
		point := begin + 1 + random.IntN(30)
		reached := w.until(t, "the next change of a rollout", over, func(_ map[types.UID]*corev1.Pod, changes int) bool { return changes >= point })
		if !reached {
			r.next()
			over = r.over()
			rollouts++
			continue
		}
		m.kill()
		killed++
		t.Logf("killed at change %d, in rollout %d", point, rollouts)
		m = manage(t, cluster)
	}
	r.converged(w)
	changes, err := w.seen()
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d kills in %d rollouts with %d changes of Pods", kills, rollouts, changes)
}
