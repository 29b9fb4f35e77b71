// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// requestsOf returns how much of a resource the Pods that count request, in thousandths, by their
// names. container is the container whose request counts; empty is the whole Pod. A Pod that does not
// count needs no request: the Pods of a finished Job often have none.
func (c census) requestsOf(of corev1.ResourceName, container string) (map[string]int64, error) {
	all := map[string]int64{}
	names := slices.Concat(c.unready, c.missing)
	for name := range c.measured {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		request, err := requestOf(c.pods[name], of, container)
		if err != nil {
			return nil, err
		}
		all[name] = request
	}
	return all, nil
}

// requestOf returns how much a Pod requests. Requests of the Pod itself take the place of those of
// its containers, unless the container is named.
// Source: k8s.io/kubernetes/pkg/controller/podautoscaler, calculateRequests.
func requestOf(pod *corev1.Pod, of corev1.ResourceName, container string) (int64, error) {
	if container == "" && resourcehelper.IsPodLevelRequestsSet(pod) {
		q, set := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})[of]
		if !set {
			return 0, fmt.Errorf("missing pod-level request for %s in Pod %s", of, pod.Name)
		}
		return milli(q), nil
	}
	var sum int64
	found := false
	for _, c := range longRunning(pod) {
		if container != "" && c.Name != container {
			continue
		}
		found = true
		q, set := c.Resources.Requests[of]
		if !set {
			return 0, fmt.Errorf("missing request for %s in container %s of Pod %s", of, c.Name, pod.Name)
		}
		sum = add(sum, milli(q))
	}
	if container != "" && !found {
		return 0, fmt.Errorf("container %s not found in Pod %s", container, pod.Name)
	}
	return sum, nil
}

// longRunning returns the containers that run as long as the Pod does: the init containers that
// are sidecars too.
func longRunning(pod *corev1.Pod) []corev1.Container {
	all := slices.Clone(pod.Spec.Containers)
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			all = append(all, c)
		}
	}
	return all
}
