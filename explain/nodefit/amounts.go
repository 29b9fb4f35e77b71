// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodefit

import (
	"iter"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func keys[K comparable, V any](m map[K]V) iter.Seq[K] { return maps.Keys(m) }

// amount writes an amount of a resource. Sums of memory are shortened: 7.9Gi says more than 8489500672.
func amount(name corev1.ResourceName, q resource.Quantity) string {
	if name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage {
		return q.String()
	}
	const unit = 1024
	n, names := float64(q.Value()), []string{"", "Ki", "Mi", "Gi", "Ti"}
	for n >= unit && len(names) > 1 {
		n, names = n/unit, names[1:]
	}
	return short(n) + names[0]
}

// short writes a number with one digit after the point, and without it if that is 0.
func short(n float64) string {
	if whole := int64(n); float64(whole) == n {
		return strconv.FormatInt(whole, 10)
	}
	return strconv.FormatFloat(n, 'f', 1, 64)
}
