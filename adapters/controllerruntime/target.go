// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// target is the object of a write.
type target struct {
	gvk     schema.GroupVersionKind
	key     object.Key
	uid     types.UID
	version object.Version // "" if it is not known
}

func targetOf(gvk schema.GroupVersionKind, o metav1.Object) target {
	version, _ := object.ParseVersion(o.GetResourceVersion()) // an object that was never on the server has none
	return target{gvk: gvk, key: object.KeyOf(o), uid: o.GetUID(), version: version}
}

// targetOfConfiguration returns the object of a configuration. After it was applied, it has the
// metadata of the answer.
func targetOfConfiguration(config runtime.ApplyConfiguration) (target, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return target{}, fmt.Errorf("reading the name in an apply configuration: %w", err)
	}
	var m metav1.PartialObjectMetadata
	if err := json.Unmarshal(text, &m); err != nil {
		return target{}, fmt.Errorf("reading the name in an apply configuration: %w", err)
	}
	return targetOf(m.GroupVersionKind(), &m), nil
}

// unanswered reports whether a write that failed may have been carried out.
func unanswered(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return false
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code >= 500
	}
	return err != nil
}
