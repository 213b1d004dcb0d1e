import { createRoot } from "react-dom/client";
import { Chat } from "./chat.tsx";

const root = document.getElementById("root");
if (root) createRoot(root).render(<Chat />);
