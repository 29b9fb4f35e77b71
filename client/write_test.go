// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// Options that are handed to several writes belong to the code that made them.
func TestOptionsAreNotWrittenTo(t *testing.T) {
	_, c := start(t)
	options := append(make([]client.WriteOption, 0, 4), client.FieldManager("me"))
	typed := client.ForResource[*corev1.Pod](c, pods)
	var tasks sync.WaitGroup
	for range 4 {
		tasks.Go(func() {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
			_, _ = typed.UpdateStatus(context.Background(), p, options...)
			_, _ = typed.Apply(context.Background(), object.KeyOf(p), "me", p, options...)
		})
	}
	tasks.Wait()
	if options[:2][1] != nil {
		t.Error("an option was added to the caller's")
	}
}

// The caller of a watch says what it waits for; a request that waited by itself would hide it.
func TestAWatchIsAskedForOnceAndItsErrorSaysWhenToTryAgain(t *testing.T) {
	api := fakeapi.New(pods)
	api.RefuseNext(2, "watch", &apierrors.NewTooManyRequests("wait", 30).ErrStatus)
	c := newClient(t, api.Config())
	_, err := c.Watch(t.Context(), pods, client.Selection{}, client.WatchOptions{})
	if seconds, ok := apierrors.SuggestsClientDelay(err); !ok || seconds != 30 || len(api.Requests()) != 1 {
		t.Errorf("requests %v; %v, again after %d s", api.Requests(), err, seconds)
	}
}
