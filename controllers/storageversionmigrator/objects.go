// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storageversionmigrator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

const (
	pageSize = 500 // objects in one answer of a list
	slice    = 500 // objects that one run patches
	atOnce   = 4   // patches that are under way
)

// stored is an object as a list had it.
type stored struct {
	key     object.Key
	version object.Version
}

// work is what the controller remembers of a migration between two runs: a restart lists the
// objects again.
type work struct {
	of       types.UID // the migration
	resource object.Resource
	objects  []stored // to be patched
	total    int
	written  time.Time // when the status was last written with the progress
	troubled bool      // the last run failed, and the status says so
}

func (w *work) progress() progress { return progress{left: len(w.objects), total: w.total} }

// version returns the resourceVersion that a resource has now.
func (r *reconciler) version(ctx context.Context, resource object.Resource) (string, error) {
	list, err := r.client.List(ctx, resource, client.Selection{MetadataOnly: true}, client.ListOptions{PageSize: 1},
		func(wire.Encoding, []byte) error { return nil })
	if err != nil {
		return "", fmt.Errorf("reading the resourceVersion of %s: %w", resource, err)
	}
	return list.ResourceVersion, nil
}

// list lists the objects of a resource that are not newer than a version. When a page has
// expired, the list begins again, with one answer for all: with many objects, or a server that
// compacts often, pages may expire each time.
func (r *reconciler) list(ctx context.Context, w *work, newest object.Version) error {
	var head wire.Head
	for o := (client.ListOptions{PageSize: pageSize}); ; {
		list, err := r.client.List(ctx, w.resource, client.Selection{MetadataOnly: true, WithoutManagedFields: true}, o, func(e wire.Encoding, raw []byte) error {
			if err := e.ReadHead(raw, &head); err != nil {
				return err
			}
			key := object.Key{Namespace: string(head.Namespace), Name: string(head.Name)}
			version, err := object.ParseVersion(string(head.ResourceVersion))
			if err != nil {
				return &unusableVersionError{fmt.Errorf("the resourceVersion of %s %s: %w", w.resource, key, err)}
			}
			w.total++
			if newest.AtLeast(version) {
				w.objects = append(w.objects, stored{key, version})
			}
			return nil
		})
		switch {
		case o.Continue != "" && apierrors.IsResourceExpired(err):
			w.objects, w.total, o = nil, 0, client.ListOptions{}
		case err != nil:
			return fmt.Errorf("listing %s: %w", w.resource, err)
		case list.Continue == "":
			return nil
		default:
			o = client.ListOptions{PageSize: pageSize, Continue: list.Continue}
		}
	}
}

// unusableVersionError is the error of a resourceVersion that cannot be compared, as those of some
// aggregated servers.
type unusableVersionError struct{ error }

func (e *unusableVersionError) Unwrap() error { return e.error }

// patchSome patches the next objects of w. It removes from w what needs no patch any more. The
// error is that of the first object that could not be patched.
func (r *reconciler) patchSome(ctx context.Context, w *work) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	some := w.objects[:min(slice, len(w.objects))]
	var (
		mu    sync.Mutex
		left  []stored
		first error
		group sync.WaitGroup
	)
	next := make(chan stored)
	for range min(atOnce, len(some)) {
		group.Go(func() {
			for o := range next {
				err := r.patch(ctx, w.resource, o)
				if err == nil {
					continue
				}
				mu.Lock()
				if left = append(left, o); first == nil {
					first = err
				}
				mu.Unlock()
				cancel() // the others would most likely fail, too
			}
		})
	}
	for _, o := range some {
		next <- o
	}
	close(next)
	group.Wait()
	w.objects = append(left, w.objects[len(some):]...)
	return first
}

// patch has the server store an object again. If the object has changed or is gone, nothing is
// left to do.
func (r *reconciler) patch(ctx context.Context, resource object.Resource, o stored) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	patch, err := client.MergePatch(map[string]any{
		"apiVersion": resource.GroupVersionKind().GroupVersion().String(), "kind": resource.Kind,
		"metadata": map[string]any{"resourceVersion": o.version},
	})
	if err != nil {
		return err
	}
	objects := client.ForResource[*metav1.PartialObjectMetadata](r.client, resource)
	_, err = objects.Patch(ctx, o.key, patch, client.FieldManager(Name))
	if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("patching %s %s: %w", resource.Kind, o.key, err)
}

// passes reports whether a request may succeed if it is sent again: the server was too busy, could
// not be reached, or failed.
// Source: k8s.io/kubernetes/pkg/controller/storageversionmigrator, isRetriableError.
func passes(err error) bool {
	return client.Unanswered(err) || client.Unreachable(err) || errors.Is(err, context.Canceled) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err)
}
