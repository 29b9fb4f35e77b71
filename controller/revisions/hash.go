// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"encoding/binary"
	"hash"
	"hash/fnv"
	"io"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"
)

// HashData returns the hash of a StatefulSet's revision: FNV-1 of 32 bits of the data and the
// decimal collision count, if there is one, in letters that make no words.
// Source: k8s.io/kubernetes/pkg/controller/history, HashControllerRevision.
func HashData(data []byte, collisions *int32) string {
	h := fnv.New32()
	_, _ = h.Write(data) // a hash accepts everything
	if collisions != nil {
		_, _ = io.WriteString(h, strconv.FormatInt(int64(*collisions), 10))
	}
	return encode(h)
}

// HashTemplate returns the hash of a Pod template that names ReplicaSets of Deployments and
// revisions of DaemonSets: FNV-1a of 32 bits of the template, printed by spew with sorted keys
// and without addresses, and of the collision count, if there is one. A version of the API
// types that has more fields prints templates differently.
// Source: k8s.io/kubernetes/pkg/controller, ComputeHash.
func HashTemplate(template *corev1.PodTemplateSpec, collisions *int32) string {
	h := fnv.New32a()
	_, _ = io.WriteString(h, dump.ForHash(*template)) // a hash accepts everything
	if collisions != nil {
		var count [8]byte // only the lower half is used, and all of it hashed
		binary.LittleEndian.PutUint32(count[:], uint32(*collisions))
		_, _ = h.Write(count[:])
	}
	return encode(h)
}

func encode(h hash.Hash32) string {
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}
