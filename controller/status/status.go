// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// messageMost is the longest message of a condition that the API takes, in bytes. It
// counts characters, of which there are never more.
// Source: k8s.io/apimachinery/pkg/apis/meta/v1, Condition.
const messageMost = 32768

// SetCondition sets the condition of type typ, and reports whether that changed anything.
// generation is that of the spec that the condition is about. reason is one word in CamelCase,
// which users may depend on. The time of the last transition changes only with the status of
// the condition, so setting an equal condition changes nothing. A message that is too long for
// the API is cut.
func SetCondition(conditions *[]metav1.Condition, generation int64, typ string, status metav1.ConditionStatus, reason, message string) bool {
	if len(message) > messageMost {
		message = strings.ToValidUTF8(message[:messageMost-3], "") + "..."
	}
	return meta.SetStatusCondition(conditions, metav1.Condition{
		Type: typ, Status: status, ObservedGeneration: generation, Reason: reason, Message: message,
	})
}

// Writer writes the objects of a kind: a cache.SharedInformer or a client.Typed.
type Writer[T object.Object] interface {
	UpdateStatus(ctx context.Context, o T, options ...client.WriteOption) (T, error)
}

// Write writes the status of now if now differs from was, the object as it was read. A
// write that changes nothing would still wake every watcher, this controller included. The
// error is a conflict (apierrors.IsConflict) if the object has changed since it was read.
func Write[T object.Object](ctx context.Context, server Writer[T], was, now T) error {
	if equality.Semantic.DeepEqual(was, now) {
		return nil
	}
	if _, err := server.UpdateStatus(ctx, now); err != nil {
		return fmt.Errorf("writing the status of %s: %w", object.KeyOf(now), err)
	}
	return nil
}
