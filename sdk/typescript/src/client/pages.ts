type Page<T> = { items: T[]; nextPageToken: string };

/** All entries of a list, read page by page as they are taken. */
export async function* listPages<T>(
  read: (pageToken: string) => Promise<Page<T>>,
): AsyncGenerator<T, void, undefined> {
  let token = "";
  do {
    const page = await read(token);
    yield* page.items;
    token = page.nextPageToken;
  } while (token !== "");
}
