// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package selinuxwarning

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// use is a medium that a Pod uses, and how.
type use struct {
	medium medium
	trait  trait
}

// usage is all that matters of one Pod.
type usage struct {
	uses  []use    // each medium once
	mixed []string // the volumes that its containers mount with several labels
}

// usageOf returns how a Pod uses its volumes. find returns the medium of a volume, and false while
// the volume is not known: it has no claim, or the claim is not bound. A volume for which find
// fails is left out.
//
// If two volumes of a Pod have the same medium, the first one counts.
func usageOf(pod *corev1.Pod, find func(*corev1.Volume) (medium, bool, error)) (usage, error) {
	var u usage
	var failures []error
	mounted := labelsByVolume(pod)
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		labels, ok := mounted[v.Name]
		if !ok {
			continue
		}
		m, known, err := find(v)
		switch {
		case err != nil:
			failures = append(failures, err)
		case !known:
		case len(labels) > 1:
			u.mixed = append(u.mixed, v.Name)
		case m != medium{} && !u.has(m):
			u.uses = append(u.uses, use{medium: m, trait: traitOf(pod, first(labels))})
		}
	}
	return u, errors.Join(failures...)
}

// has reports whether a medium is among the uses.
func (u *usage) has(m medium) bool {
	return slices.ContainsFunc(u.uses, func(use use) bool { return use.medium == m })
}

// first returns the first of labels, "" if there is none.
func first(labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	return labels[0]
}
