// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// labelled marks what belongs to a Website; its value is the Website's name.
const labelled = "example.com/website"

func named(site *Website) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name, Labels: map[string]string{labelled: site.Name}}
}

func page(site *Website) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: named(site), Data: map[string]string{"index.html": site.Spec.Page}}
}

func deployment(site *Website) *appsv1.Deployment {
	labels := map[string]string{labelled: site.Name}
	return &appsv1.Deployment{
		ObjectMeta: named(site),
		Spec: appsv1.DeploymentSpec{
			Replicas: &site.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name: "nginx", Image: "nginx:1.29",
						Ports:        []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
						VolumeMounts: []corev1.VolumeMount{{Name: "page", MountPath: "/usr/share/nginx/html"}},
					}},
					Volumes: []corev1.Volume{{Name: "page", VolumeSource: corev1.VolumeSource{
						ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: site.Name}},
					}}},
				},
			},
		},
	}
}

func service(site *Website) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: named(site),
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{labelled: site.Name},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80), Protocol: corev1.ProtocolTCP}},
		},
	}
}
