// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controller/podlimits"
	"github.com/setpoint-io/setpoint/runs"
)

// Annotations that kubectl and kube-controller-manager know.
// Source: k8s.io/kubernetes/pkg/controller/deployment/util.
const (
	// revisionAnnotation numbers the rollouts of a Deployment, on its ReplicaSets
	// and on itself. kubectl rollout history and undo go by it.
	revisionAnnotation = "deployment.kubernetes.io/revision"
	// revisionHistoryAnnotation lists the earlier revisions of a set that was
	// rolled back to.
	revisionHistoryAnnotation = "deployment.kubernetes.io/revision-history"
	// desiredAnnotation is the size of the Deployment when the set was last
	// scaled. Where it differs from the size now, the Deployment has been scaled.
	desiredAnnotation = "deployment.kubernetes.io/desired-replicas"
	// maxAnnotation is the same with the surge: proportions are computed from it.
	maxAnnotation = "deployment.kubernetes.io/max-replicas"
)

// historyMost is how long the list of earlier revisions may grow, in bytes:
// about 400 revisions of four digits. The oldest go first.
// Source: k8s.io/kubernetes/pkg/controller/deployment, maxRevHistoryLengthInChars.
const historyMost = 2000

// ownAnnotations are not handed from a Deployment to its sets or back.
var ownAnnotations = map[string]bool{
	corev1.LastAppliedConfigAnnotation: true,
	revisionAnnotation:                 true,
	revisionHistoryAnnotation:          true,
	desiredAnnotation:                  true,
	maxAnnotation:                      true,
	appsv1.DeprecatedRollbackTo:        true,
	runs.TraceparentAnnotation:         true, // each object has that of the run that created it
}

// revisionOf returns a set's revision, and 0 where it has none that is a number.
func revisionOf(set *appsv1.ReplicaSet) int64 {
	revision, err := strconv.ParseInt(set.Annotations[revisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return revision
}

// nextRevision returns one more than the highest revision of old sets.
func nextRevision(old []*appsv1.ReplicaSet) int64 {
	var highest int64
	for _, set := range old {
		highest = max(highest, revisionOf(set))
	}
	return highest + 1
}

// previousRevision returns the second highest revision of all sets, or 0.
func previousRevision(sets []*appsv1.ReplicaSet) int64 {
	var highest, second int64
	for _, set := range sets {
		switch revision := revisionOf(set); {
		case revision >= highest:
			highest, second = revision, highest
		case revision > second:
			second = revision
		}
	}
	return second
}

// inherited returns the annotations of a Deployment that a set does not have, or has with
// another value. An annotation that the Deployment lost stays: it cannot be distinguished
// from one that was put on the set itself.
func inherited(d *appsv1.Deployment, set *appsv1.ReplicaSet) map[string]string {
	changed := map[string]string{}
	for key, want := range d.Annotations {
		if has, ok := set.Annotations[key]; !ownAnnotations[key] && (!ok || has != want) {
			changed[key] = want
		}
	}
	return changed
}

// revised returns the annotations that give a set a revision, if that is higher
// than the one it has. A set that had one before is being rolled back to: the
// earlier revision is kept in its history.
//
// A set may have a higher revision than the next one, where old sets with higher
// revisions were deleted: it keeps it. So it does where it has one that is no
// number.
func revised(set *appsv1.ReplicaSet, next int64) map[string]string {
	before := set.Annotations[revisionAnnotation]
	changed := map[string]string{revisionAnnotation: strconv.FormatInt(next, 10)}
	if before == "" {
		return changed
	}
	if revision, err := strconv.ParseInt(before, 10, 64); err != nil || revision >= next {
		return nil
	}
	changed[revisionHistoryAnnotation] = lengthened(set.Annotations[revisionHistoryAnnotation], before)
	return changed
}

// lengthened adds a revision to a history, and drops the oldest ones that there
// is no room for.
func lengthened(history, revision string) string {
	for history != "" && len(history)+len(",")+len(revision) > historyMost {
		_, history, _ = strings.Cut(history, ",")
	}
	if history == "" {
		return revision
	}
	return history + "," + revision
}

// sized returns the annotations with the size of the Deployment that the set does not
// have yet.
func sized(set *appsv1.ReplicaSet, l podlimits.Limits) map[string]string {
	changed := map[string]string{}
	for key, want := range map[string]int32{desiredAnnotation: l.Desired, maxAnnotation: l.Most()} {
		if text := strconv.FormatInt(int64(want), 10); set.Annotations[key] != text {
			changed[key] = text
		}
	}
	return changed
}

// annotated returns the number of replicas that an annotation of a set names.
func annotated(set *appsv1.ReplicaSet, key string) (int32, bool) {
	n, err := strconv.ParseInt(set.Annotations[key], 10, 32)
	if err != nil || n < 0 {
		return 0, false
	}
	return int32(n), true
}
