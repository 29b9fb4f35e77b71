// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

const (
	soakNamespace = "default"
	soakGroup     = "soak.example.com"
	// soakResources is how many objects a kind has that was defined.
	soakResources = 5
)

var definitions = object.Resource{Group: "apiextensions.k8s.io", Version: "v1", Plural: "customresourcedefinitions", Kind: "CustomResourceDefinition"}

// do takes a step, and again while the control plane is away.
func (s *soakRun) do(ctx context.Context, step soakStep) error {
	ctx, cancel := context.WithTimeout(ctx, soakWait)
	defer cancel()
	s.steps[step.action]++
	err := s.try(ctx, step)
	for err != nil && ctx.Err() == nil && !errors.Is(err, errSoak) {
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
			err = s.try(ctx, step)
		}
	}
	if err != nil {
		return fmt.Errorf("trying to %s %s: %w", step.action, step.name, err)
	}
	return nil
}

// errSoak marks an error that would be the same the next time.
var errSoak = errors.New("the soak cannot go on")

func (s *soakRun) try(ctx context.Context, step soakStep) error {
	key := object.Key{Namespace: soakNamespace, Name: step.name}
	replicas := int32(step.n)
	switch step.action {
	case createDeployment:
		// A Service beside it, so that EndpointSlices come and go as well.
		labels := map[string]string{"app": step.name, "half": fmt.Sprint(step.n % 2)}
		_, err := client.For[*corev1.Service](s.direct).Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
			Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}},
		})
		if err := there(err); err != nil {
			return err
		}
		_, err = client.For[*appsv1.Deployment](s.direct).Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
			Spec: appsv1.DeploymentSpec{
				Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels),
			},
		})
		return there(err)
	case rollDeployment:
		return s.patch(ctx, key, map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
			"annotations": map[string]any{"roll": fmt.Sprint(step.at)},
		}}}})
	case scaleDeployment:
		return s.patch(ctx, key, map[string]any{"spec": map[string]any{"replicas": replicas}})
	case deleteDeployment:
		if err := gone(client.For[*corev1.Service](s.direct).Delete(ctx, key)); err != nil {
			return err
		}
		return gone(client.For[*appsv1.Deployment](s.direct).Delete(ctx, key, client.Propagation(metav1.DeletePropagationBackground)))
	case createConfigMap:
		_, err := client.For[*corev1.ConfigMap](s.direct).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: map[string]string{"n": strings.Repeat("x", step.n*100)},
		})
		return there(err)
	case updateConfigMap:
		patch, err := client.MergePatch(map[string]any{"data": map[string]any{"n": fmt.Sprint(step.at)}})
		if err != nil {
			return err
		}
		_, err = client.For[*corev1.ConfigMap](s.direct).Patch(ctx, key, patch)
		return err
	case deleteConfigMap:
		return gone(client.For[*corev1.ConfigMap](s.direct).Delete(ctx, key))
	case defineKind:
		return s.defineKind(ctx, step.name)
	case removeKind:
		s.unfollow(step.name)
		name := kindOf(step.name).Plural + "." + soakGroup
		return gone(client.ForResource[*unstructured.Unstructured](s.direct, definitions).Delete(ctx, object.Key{Name: name}))
	case addHandler:
		if s.handlers[step.name] == nil {
			s.handlers[step.name] = s.followers[step.n%len(s.followers)].again()
		}
		return nil
	case removeHandler:
		s.handlers[step.name]()
		delete(s.handlers, step.name)
		return nil
	case addInformer:
		return s.addInformer(step)
	case releaseInformer:
		s.unfollow(step.name)
		return nil
	case cutConnections:
		s.proxy.cut()
		return nil
	case restartServer:
		return s.restartServer(ctx)
	case handOver:
		return s.handOver(ctx)
	}
	return fmt.Errorf("%w: there is no action %s", errSoak, step.action)
}

func (s *soakRun) patch(ctx context.Context, key object.Key, change map[string]any) error {
	patch, err := client.MergePatch(change)
	if err != nil {
		return err
	}
	_, err = client.For[*appsv1.Deployment](s.direct).Patch(ctx, key, patch)
	return err
}

// there and gone leave out the errors of a second try whose first has had its effect.
func there(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// kindOf is the custom resource of a name.
func kindOf(name string) object.Resource {
	return object.Resource{Group: soakGroup, Version: "v1", Plural: name + "s", Kind: strings.ToUpper(name[:1]) + name[1:], Namespaced: true}
}

// defineKind follows a kind, defines it, and makes objects of it once it is served.
func (s *soakRun) defineKind(ctx context.Context, name string) error {
	kind := kindOf(name)
	if err := s.followKind(name, kind); err != nil {
		return err
	}
	_, err := client.ForResource[*unstructured.Unstructured](s.direct, definitions).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": definitions.APIVersion(), "kind": definitions.Kind,
		"metadata": map[string]any{"name": kind.Plural + "." + soakGroup},
		"spec": map[string]any{
			"group": soakGroup, "scope": "Namespaced",
			"names": map[string]any{"plural": kind.Plural, "singular": name, "kind": kind.Kind},
			"versions": []any{map[string]any{
				"name": kind.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}})
	if err := there(err); err != nil {
		return err
	}
	for i := range soakResources {
		_, err := client.ForResource[*unstructured.Unstructured](s.direct, kind).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": kind.APIVersion(), "kind": kind.Kind,
			"metadata": map[string]any{"namespace": soakNamespace, "name": fmt.Sprint(name, "-", i)}, "spec": map[string]any{"n": int64(i)},
		}})
		if err := there(err); err != nil {
			return err
		}
	}
	return nil
}

func (s *soakRun) followKind(name string, kind object.Resource) error {
	if s.passing[name] != nil {
		return nil
	}
	f, err := soakFollow(kind.Plural, s.factory, client.ForResource[*unstructured.Unstructured](s.direct, kind),
		client.Selection{}, cache.OfKind(kind.GroupVersionKind()))
	if err != nil {
		return fmt.Errorf("%w: %w", errSoak, err)
	}
	s.passing[name] = f
	return nil
}

// addInformer follows some of the Pods, with a selection of its own.
func (s *soakRun) addInformer(step soakStep) error {
	if s.passing[step.name] != nil {
		return nil
	}
	selector := fmt.Sprintf("half=%d,app!=%s", step.n%2, step.name)
	f, err := soakFollow("pods of "+step.name, s.factory, client.For[*corev1.Pod](s.direct),
		client.Selection{Labels: selector}, cache.WithLabels(selector))
	if err != nil {
		return fmt.Errorf("%w: %w", errSoak, err)
	}
	s.passing[step.name] = f
	return nil
}

func (s *soakRun) unfollow(name string) {
	if f := s.passing[name]; f != nil {
		f.release()
		delete(s.passing, name)
	}
}

// restartServer kills the control plane and starts it with the same data and port.
func (s *soakRun) restartServer(ctx context.Context) error {
	if err := s.server.Kill(); err != nil {
		return err
	}
	return s.startServer(ctx)
}
