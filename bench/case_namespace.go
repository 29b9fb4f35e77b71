// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// namespaceCase is the deletion of a namespace that has something of everything.
var namespaceCase = scaleCase{
	what:        fmt.Sprintf("a namespace with objects of %d kinds is deleted", len(contents)),
	size:        10_000,
	controllers: []string{"serviceaccount-controller", "namespace-controller"},
	measure:     measureNamespace,
	plain:       measurePlainNamespace,
	lines: func(int) []caseLine {
		return []caseLine{
			{name: "namespace-wall", unit: "s", reading: "wall", aim: aim{most: 1}},
			// Both let API servers learn of the deletion for 5 s, and delete nothing meanwhile
			// but Pods, of which there are none. What follows is what one can be faster at.
			{name: "namespace-wait-before-deletes", unit: "s", reading: "wait"},
			{name: "namespace-deletes-per-second", unit: perSecond, reading: "rate", aim: aim{least: 1.5}},
			{name: "namespace-deletes-vs-plain-clients", unit: perSecond, reading: "rate", plain: true},
			{name: "namespace-cpu", unit: "s", reading: "cpu", aim: aim{most: 0.5}},
		}
	},
}

// content is a kind of which a namespace has objects, and what such an object needs
// for the server to take it.
type content struct {
	group, version, resource, kind string
	fields                         map[string]any
}

var (
	contentLabels   = map[string]any{"app": "content"}
	contentSelector = map[string]any{"matchLabels": contentLabels}
	contentPod      = map[string]any{"containers": []any{map[string]any{"name": "c", "image": "nginx"}}}
	contentTemplate = map[string]any{"metadata": map[string]any{"labels": contentLabels}, "spec": contentPod}
)

// contents are twenty kinds that nothing but the namespace controller works on here.
var contents = []content{
	{"", "v1", "configmaps", "ConfigMap", nil},
	{"", "v1", "secrets", "Secret", nil},
	{"", "v1", "endpoints", "Endpoints", nil},
	{"", "v1", "serviceaccounts", "ServiceAccount", nil},
	{"", "v1", "services", "Service", spec(map[string]any{"clusterIP": "None"})},
	{"", "v1", "podtemplates", "PodTemplate", map[string]any{"template": contentTemplate}},
	{"", "v1", "replicationcontrollers", "ReplicationController", spec(map[string]any{"selector": contentLabels, "template": contentTemplate})},
	{"", "v1", "limitranges", "LimitRange", nil},
	{"apps", "v1", "deployments", "Deployment", spec(map[string]any{"selector": contentSelector, "template": contentTemplate})},
	{"apps", "v1", "replicasets", "ReplicaSet", spec(map[string]any{"selector": contentSelector, "template": contentTemplate})},
	{"apps", "v1", "statefulsets", "StatefulSet", spec(map[string]any{"selector": contentSelector, "template": contentTemplate, "serviceName": "s"})},
	{"apps", "v1", "daemonsets", "DaemonSet", spec(map[string]any{"selector": contentSelector, "template": contentTemplate})},
	{"apps", "v1", "controllerrevisions", "ControllerRevision", map[string]any{"revision": int64(1), "data": map[string]any{"replicas": int64(1)}}},
	{"batch", "v1", "cronjobs", "CronJob", spec(map[string]any{"schedule": "0 0 1 1 *", "jobTemplate": map[string]any{
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"restartPolicy": "Never", "containers": contentPod["containers"]}}},
	}})},
	{"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", spec(map[string]any{"podSelector": map[string]any{}})},
	{"networking.k8s.io", "v1", "ingresses", "Ingress", spec(map[string]any{"rules": []any{map[string]any{"host": "example.org"}}})},
	{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", spec(map[string]any{"selector": contentSelector, "minAvailable": int64(1)})},
	{"rbac.authorization.k8s.io", "v1", "roles", "Role", nil},
	{"coordination.k8s.io", "v1", "leases", "Lease", nil},
	{"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", map[string]any{"addressType": "IPv4", "endpoints": []any{}}},
}

func spec(fields map[string]any) map[string]any { return map[string]any{"spec": fields} }

func (c *content) groupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: c.group, Version: c.version, Resource: c.resource}
}

// make returns the object of a name.
func (c *content) make(namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	maps.Copy(o.Object, c.fields)
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: c.group, Version: c.version, Kind: c.kind})
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// contentOf is the kind of the i-th object, and its name.
func contentOf(i int) (*content, string) {
	return &contents[i%len(contents)], fmt.Sprint("content-", i/len(contents))
}

// fullNamespace is the namespace that is deleted.
const fullNamespace = "full"

func (s *scene) fillNamespace(ctx context.Context) error {
	if err := s.addNamespace(ctx, fullNamespace); err != nil {
		return err
	}
	return s.each(ctx, s.size, func(ctx context.Context, i int) error {
		c, name := contentOf(i)
		_, err := s.dynamic.Resource(c.groupVersionResource()).Namespace(fullNamespace).Create(ctx, c.make(fullNamespace, name), metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("creating a %s: %w", c.kind, err)
		}
		return nil
	})
}

func measureNamespace(ctx context.Context, s *scene) (readings, error) {
	if err := s.fillNamespace(ctx); err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	firstGone, err := s.firstGone(watching, stop)
	if err != nil {
		return nil, err
	}
	var began time.Time
	l, err := s.work(ctx, "deleted", func() error {
		began = time.Now()
		if err := s.plain.CoreV1().Namespaces().Delete(ctx, fullNamespace, metav1.DeleteOptions{}); err != nil {
			return err
		}
		return poll(ctx, "the namespace to go", func() (bool, error) {
			_, err := s.plain.CoreV1().Namespaces().Get(ctx, fullNamespace, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return true, nil
			}
			if err == nil {
				err = s.aliveManager()
			}
			return false, err
		})
	})
	if err != nil {
		return nil, err
	}
	wait := (<-firstGone).Sub(began).Seconds()
	return readings{"wall": l.wall, "wait": wait, "cpu": l.cpu, "rate": float64(s.size) / (l.wall - wait)}, nil
}

// firstGone returns a channel that tells when the first object of any kind went from the
// namespace. From then on nothing is to be watched any more, and stop is called.
func (s *scene) firstGone(ctx context.Context, stop func()) (<-chan time.Time, error) {
	told := make(chan time.Time, len(contents))
	for i := range contents {
		kind := s.dynamic.Resource(contents[i].groupVersionResource()).Namespace(fullNamespace)
		now, err := kind.List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", contents[i].resource, err)
		}
		w, err := kind.Watch(ctx, metav1.ListOptions{ResourceVersion: now.GetResourceVersion()})
		if err != nil {
			return nil, fmt.Errorf("watching %s: %w", contents[i].resource, err)
		}
		go func() {
			for event := range w.ResultChan() {
				if event.Type == watch.Deleted {
					told <- time.Now()
					stop()
				}
			}
		}()
	}
	return told, nil
}

// measurePlainNamespace deletes the same objects one by one.
func measurePlainNamespace(ctx context.Context, s *scene) (readings, error) {
	if err := s.fillNamespace(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	err := s.each(ctx, s.size, func(ctx context.Context, i int) error {
		c, name := contentOf(i)
		err := s.dynamic.Resource(c.groupVersionResource()).Namespace(fullNamespace).Delete(ctx, name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil // the server has Endpoints go with the Service of their name
		}
		return err
	})
	return readings{"rate": float64(s.size) / time.Since(began).Seconds()}, err
}
