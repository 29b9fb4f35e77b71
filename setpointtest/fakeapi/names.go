// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/types"
)

// generator makes names and UIDs. A server's are the same in each run of a test.
type generator struct{ random *rand.Rand }

func newGenerator() *generator { return &generator{rand.New(rand.NewPCG(1, 1))} }

// uid returns a UID in the form of a random UUID. Source: RFC 9562, version 4.
func (g *generator) uid() types.UID {
	b := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, g.random.Uint64()), g.random.Uint64())
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}

// Source: k8s.io/apiserver/pkg/storage/names and k8s.io/apimachinery/pkg/util/rand.
const (
	generatedLetters = "bcdfghjklmnpqrstvwxz2456789"
	generatedLength  = 5
	longestBase      = 63 - generatedLength
)

// name returns a name that begins with a prefix.
func (g *generator) name(prefix string) string {
	name := []byte(prefix[:min(len(prefix), longestBase)])
	for range generatedLength {
		name = append(name, generatedLetters[g.random.IntN(len(generatedLetters))])
	}
	return string(name)
}
