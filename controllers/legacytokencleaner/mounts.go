// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package legacytokencleaner

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// mounts has the Secrets that Pods refer to. The Pods of a namespace are read at the
// first look-up in it.
type mounts struct {
	pods  cache.Snapshot[*corev1.Pod]
	known map[string]map[string]bool // by namespace and name of the Secret
}

// has reports whether a Pod refers to a Secret.
func (m *mounts) has(secret object.Key) (bool, error) {
	names, known := m.known[secret.Namespace]
	if !known {
		names = map[string]bool{}
		for _, item := range m.pods.Namespace(secret.Namespace) {
			pod, err := item.Object()
			if err != nil {
				return false, err
			}
			for _, name := range secretsOf(pod) {
				names[name] = true
			}
		}
		m.known[secret.Namespace] = names
	}
	return names[secret.Name], nil
}

// secretsOf returns the names of all Secrets that a Pod refers to, in whatever way. A
// name may be empty, or come more than once.
// Source of the places: k8s.io/kubernetes/pkg/api/v1/pod, VisitPodSecretNames.
func secretsOf(pod *corev1.Pod) []string {
	var names []string
	for _, s := range pod.Spec.ImagePullSecrets {
		names = append(names, s.Name)
	}
	for _, c := range pod.Spec.InitContainers {
		names = append(names, secretsOfEnvironment(c.Env, c.EnvFrom)...)
	}
	for _, c := range pod.Spec.Containers {
		names = append(names, secretsOfEnvironment(c.Env, c.EnvFrom)...)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		names = append(names, secretsOfEnvironment(c.Env, c.EnvFrom)...)
	}
	for i := range pod.Spec.Volumes {
		names = append(names, secretsOfVolume(&pod.Spec.Volumes[i].VolumeSource)...)
	}
	return names
}

func secretsOfEnvironment(env []corev1.EnvVar, from []corev1.EnvFromSource) []string {
	var names []string
	for _, source := range from {
		if source.SecretRef != nil {
			names = append(names, source.SecretRef.Name)
		}
	}
	for _, variable := range env {
		if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
			names = append(names, variable.ValueFrom.SecretKeyRef.Name)
		}
	}
	return names
}

func secretsOfVolume(v *corev1.VolumeSource) []string {
	var reference *corev1.LocalObjectReference
	switch {
	case v.Secret != nil:
		return []string{v.Secret.SecretName}
	case v.AzureFile != nil:
		return []string{v.AzureFile.SecretName}
	case v.Projected != nil:
		var names []string
		for _, source := range v.Projected.Sources {
			if source.Secret != nil {
				names = append(names, source.Secret.Name)
			}
		}
		return names
	case v.CephFS != nil:
		reference = v.CephFS.SecretRef
	case v.Cinder != nil:
		reference = v.Cinder.SecretRef
	case v.FlexVolume != nil:
		reference = v.FlexVolume.SecretRef
	case v.RBD != nil:
		reference = v.RBD.SecretRef
	case v.ScaleIO != nil:
		reference = v.ScaleIO.SecretRef
	case v.ISCSI != nil:
		reference = v.ISCSI.SecretRef
	case v.StorageOS != nil:
		reference = v.StorageOS.SecretRef
	case v.CSI != nil:
		reference = v.CSI.NodePublishSecretRef
	}
	if reference == nil {
		return nil
	}
	return []string{reference.Name}
}
