// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nearest

// distance is the number of letters to insert, delete or replace, and of
// neighbours to swap, that makes b of a.
//
// Source: the optimal string alignment distance, as in Boytsov, "Indexing methods
// for approximate dictionary searching", ACM JEA 16, 2011.
func distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	// rows[i][j] is the distance of the first i letters of a from the first j of b.
	rows := make([][]int, len(from)+1)
	for i := range rows {
		rows[i] = make([]int, len(to)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(from); i++ {
		for j := 1; j <= len(to); j++ {
			replaced := rows[i-1][j-1]
			if from[i-1] != to[j-1] {
				replaced++
			}
			rows[i][j] = min(replaced, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && from[i-1] == to[j-2] && from[i-2] == to[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(from)][len(to)]
}
