// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podManagedFields are the two entries that a running Pod has: of the controller
// manager that made it, and of the kubelet that reports its state.
func podManagedFields(p *corev1.Pod, began time.Time) []metav1.ManagedFieldsEntry {
	paths := []string{"metadata generateName", "metadata annotations .", "metadata labels .", "metadata ownerReferences .",
		`metadata ownerReferences k:{"uid":"` + string(p.OwnerReferences[0].UID) + `"}`}
	for name := range p.Annotations {
		paths = append(paths, "metadata annotations "+name)
	}
	for name := range p.Labels {
		paths = append(paths, "metadata labels "+name)
	}
	for _, name := range []string{"dnsPolicy", "restartPolicy", "schedulerName", "securityContext",
		"serviceAccount", "serviceAccountName", "terminationGracePeriodSeconds"} {
		paths = append(paths, "spec "+name)
	}
	for _, c := range p.Spec.Containers {
		paths = append(paths, containerFields(c)...)
	}
	for _, leaf := range []string{".", "name", "configMap defaultMode", "configMap name"} {
		paths = append(paths, `spec volumes k:{"name":"config"} `+leaf)
	}
	var status []string
	for _, c := range []string{"ContainersReady", "Initialized", "Ready"} {
		at := `status conditions k:{"type":"` + c + `"}`
		for _, leaf := range []string{".", "lastProbeTime", "lastTransitionTime", "status", "type"} {
			status = append(status, at+" "+leaf)
		}
	}
	status = append(status, "status containerStatuses", "status hostIP", "status phase", "status podIP", "status podIPs .",
		`status podIPs k:{"ip":"`+p.Status.PodIP+`"} .`, `status podIPs k:{"ip":"`+p.Status.PodIP+`"} ip`, "status startTime")
	return []metav1.ManagedFieldsEntry{
		fields("kube-controller-manager", "", at(began, 0), paths...),
		fields("kubelet", "status", p.Status.Conditions[1].LastTransitionTime, status...),
	}
}

func containerFields(c corev1.Container) []string {
	here := `spec containers k:{"name":"` + c.Name + `"} `
	paths := []string{here + ".", here + "image", here + "imagePullPolicy", here + "name", here + "resources limits memory",
		here + "resources requests cpu", here + "resources requests memory", here + "terminationMessagePath", here + "terminationMessagePolicy"}
	for _, e := range c.Env {
		paths = append(paths, here+`env k:{"name":"`+e.Name+`"} .`, here+`env k:{"name":"`+e.Name+`"} name`)
	}
	for _, p := range c.Ports {
		port := here + `ports k:{"containerPort":` + strconv.Itoa(int(p.ContainerPort)) + `,"protocol":"TCP"} `
		paths = append(paths, port+".", port+"containerPort", port+"name", port+"protocol")
	}
	probe := func(name string) {
		for _, leaf := range []string{"failureThreshold", "httpGet path", "httpGet port", "httpGet scheme", "initialDelaySeconds",
			"periodSeconds", "successThreshold", "timeoutSeconds"} {
			paths = append(paths, here+name+" "+leaf)
		}
	}
	if c.LivenessProbe != nil {
		probe("livenessProbe")
	}
	if c.ReadinessProbe != nil {
		probe("readinessProbe")
	}
	for _, m := range c.VolumeMounts[:len(c.VolumeMounts)-1] { // the token's is an admission plugin's
		mount := here + `volumeMounts k:{"mountPath":"` + m.MountPath + `"} `
		paths = append(paths, mount+".", mount+"mountPath", mount+"name")
	}
	return paths
}
