// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const prefix = "sim.setpoint.io/"

// Annotations that state values; ParseValue has their grammar.
const (
	// UsageCPU and UsageMemory are what each container of a Pod uses. With a dot and
	// the name of a container after them, they are what that container uses.
	UsageCPU    = prefix + "usage-cpu"
	UsageMemory = prefix + "usage-memory"

	// MetricPrefix and the name of a metric are the value of that metric: a custom
	// metric of the object that has the annotation, or, on a ConfigMap, a series of
	// an external metric.
	MetricPrefix = prefix + "metric."
)

// IsAnnotation reports whether an annotation of a Pod states a value.
func IsAnnotation(name string) bool {
	return strings.HasPrefix(name, MetricPrefix) || isUsage(name, UsageCPU) || isUsage(name, UsageMemory)
}

// isUsage reports whether an annotation is the given one, or the given one for one container.
func isUsage(name, annotation string) bool {
	container, ok := strings.CutPrefix(name, annotation)
	return ok && (container == "" || container[0] == '.')
}

// CheckAnnotation returns an error that says what is wrong with an annotation of a Pod
// for which IsAnnotation is true, and nil if it is right.
func CheckAnnotation(pod *corev1.Pod, name, text string) error {
	value, err := ParseValue(text)
	if err != nil || strings.HasPrefix(name, MetricPrefix) {
		return err
	}
	if value.negative() {
		return fmt.Errorf("%q is negative", text)
	}
	if _, container, one := strings.Cut(strings.TrimPrefix(name, prefix), "."); one && !hasContainer(pod, container) {
		return fmt.Errorf("the Pod has no container %q", container)
	}
	return nil
}

func hasContainer(pod *corev1.Pod, name string) bool {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if containers[i].Name == name {
				return true
			}
		}
	}
	return false
}

// usageOf returns what an annotation states that a container uses. It reports false if no
// annotation does that can be understood.
func usageOf(pod *corev1.Pod, annotation, container string) (Value, bool) {
	for _, name := range []string{annotation + "." + container, annotation} {
		text, ok := pod.Annotations[name]
		if ok && CheckAnnotation(pod, name, text) == nil {
			v, err := ParseValue(text)
			return v, err == nil
		}
	}
	return Value{}, false
}

var errShared = errors.New(`only a Pod can have a value that is "shared"`)

// metricOf returns the value of a metric of an object that is not a Pod. It reports false
// if the object has none.
func metricOf(o *unstructured.Unstructured, metric string) (v Value, ok bool, err error) {
	text, ok := o.GetAnnotations()[MetricPrefix+metric]
	if !ok {
		return Value{}, false, nil
	}
	if v, err = ParseValue(text); err == nil && v.Shared() {
		err = errShared
	}
	if err != nil {
		return Value{}, false, fmt.Errorf("%s %s: annotation %s: %w", o.GetKind(), o.GetName(), MetricPrefix+metric, err)
	}
	return v, v.Exists(), nil
}
