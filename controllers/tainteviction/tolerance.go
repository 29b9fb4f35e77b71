// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package tainteviction

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/setpoint-io/setpoint/internal/seconds"
)

// noExecute returns the taints of a node that have Pods go.
func noExecute(node *corev1.Node) []corev1.Taint {
	var taints []corev1.Taint
	for _, t := range node.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoExecute {
			taints = append(taints, t)
		}
	}
	return taints
}

// cause is what a taint's time is kept under. That a node is not ready and that it is
// unreachable are two degrees of one thing, and node-lifecycle-controller swaps the
// taints.
func cause(t *corev1.Taint) string {
	key := t.Key
	if key == corev1.TaintNodeUnreachable {
		key = corev1.TaintNodeNotReady
	}
	return key + "=" + t.Value
}

// tolerated returns for how long a Pod with these tolerations bears a taint. bounded is
// false if it is for ever. Of several tolerations the first one that is about the
// taint counts, as upstream has it.
// Source: k8s.io/kubernetes/pkg/apis/core/v1/helper, GetMatchingTolerations.
func tolerated(tolerations []corev1.Toleration, taint *corev1.Taint) (d time.Duration, bounded bool) {
	for i := range tolerations {
		// A server that does not compare numbers lets no toleration in that does.
		if !tolerations[i].ToleratesTaint(klog.Logger{}, taint, true) {
			continue
		}
		n := tolerations[i].TolerationSeconds
		if n == nil {
			return 0, false
		}
		return max(0, seconds.Duration(*n)), true
	}
	return 0, true
}

// firstUntolerated names the first taint that a Pod does not tolerate for ever.
func firstUntolerated(tolerations []corev1.Toleration, taints []corev1.Taint) string {
	for i := range taints {
		if _, bounded := tolerated(tolerations, &taints[i]); bounded {
			return taints[i].ToString()
		}
	}
	return ""
}

// clock is the time that runs for a Pod.
type clock struct {
	uid   types.UID
	began []beginning
}

// beginning is when a taint was first seen beside a Pod.
type beginning struct {
	cause string
	at    time.Time
}

// look notes which taints a Pod is beside now, forgets those that it is no longer
// beside, and returns when it must go. bounded is false if it may stay.
func (c *clock) look(tolerations []corev1.Toleration, taints []corev1.Taint, now time.Time) (deadline time.Time, bounded bool) {
	var began []beginning
	for i := range taints {
		b := beginning{cause: cause(&taints[i]), at: now}
		if before := slices.IndexFunc(c.began, func(o beginning) bool { return o.cause == b.cause }); before >= 0 {
			b.at = c.began[before].at
		}
		began = append(began, b)
		d, ends := tolerated(tolerations, &taints[i])
		if !ends {
			continue
		}
		if at := b.at.Add(d); !bounded || at.Before(deadline) {
			deadline, bounded = at, true
		}
	}
	c.began = began
	return deadline, bounded
}
