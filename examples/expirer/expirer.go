// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
)

// expiresAfter is the annotation of a ConfigMap with its lifetime, such as "10m".
const expiresAfter = "example.com/expires-after"

// newExpirer returns the controller.
func newExpirer(h controller.Host) *controller.Controller {
	maps := cache.Informer[*corev1.ConfigMap](h)
	reconcile := func(ctx context.Context, req controller.Request) (controller.Result, error) {
		m, err := maps.Get(req.Key)
		if apierrors.IsNotFound(err) {
			return controller.Result{}, nil
		}
		if err != nil {
			return controller.Result{}, err
		}
		left, expires, err := timeLeft(m, time.Now())
		switch {
		case err != nil:
			return controller.Result{}, controller.Terminal(err) // until a user changes it
		case !expires:
			return controller.Result{}, nil
		case left > 0:
			return controller.Result{After: left}, nil
		}
		return controller.Result{}, maps.Delete(ctx, req.Key, client.IfUID(m.UID))
	}
	return controller.New("expirer", reconcile, controller.For(maps))
}

// timeLeft returns for how long a ConfigMap is to stay, and whether its time ever ends.
func timeLeft(m *corev1.ConfigMap, now time.Time) (left time.Duration, expires bool, err error) {
	text, expires := m.Annotations[expiresAfter]
	if !expires {
		return 0, false, nil
	}
	lifetime, err := time.ParseDuration(text)
	if err != nil {
		return 0, false, fmt.Errorf("annotation %s: %w", expiresAfter, err)
	}
	return m.CreationTimestamp.Add(lifetime).Sub(now), true, nil
}
