// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/object"
)

// messageMost is the longest message of a condition that the API takes, in bytes. It
// counts characters, of which there are never more.
// Source: k8s.io/apimachinery/pkg/apis/meta/v1, Condition.
const messageMost = 32768

// SetCondition sets the condition of a type in a status, for the generation of the spec
// that it was found with, and reports whether that changed anything. reason is one word
// in CamelCase, an API to users. The time of the last transition is kept while the
// status of the condition stays the same, so that a condition said again is no change.
// A message that is too long for the API is cut: that of an error can be.
func SetCondition(conditions *[]metav1.Condition, generation int64, typ string, status metav1.ConditionStatus, reason, message string) bool {
	if len(message) > messageMost {
		message = strings.ToValidUTF8(message[:messageMost-3], "") + "..."
	}
	return meta.SetStatusCondition(conditions, metav1.Condition{
		Type: typ, Status: status, ObservedGeneration: generation, Reason: reason, Message: message,
	})
}

// WriteStatus writes the status of now if now differs from was, the object as it was
// read: a status that is written in every run, changed or not, would wake whoever
// watches it, this controller among them. It is a conflict (apierrors.IsConflict) where
// the object has changed since it was read.
func WriteStatus[T object.Object](ctx context.Context, server Writer[T], was, now T) error {
	if equality.Semantic.DeepEqual(was, now) {
		return nil
	}
	if _, err := server.UpdateStatus(ctx, now); err != nil {
		return fmt.Errorf("writing the status of %s: %w", object.KeyOf(now), err)
	}
	return nil
}
